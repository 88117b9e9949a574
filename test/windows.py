"""Convolutions that kernel tests of several templates run."""

from __future__ import annotations

# channels, filters, height, width, window, pads, strides, dilations, groups
WINDOWS = {
    "1x1": (32, 48, 9, 7, (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), 1),
    "1x1 strided": (32, 48, 9, 7, (1, 1), (0, 0, 0, 0), (2, 2), (1, 1), 1),
    "3x3": (16, 64, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "3x3 strided, odd channels": (15, 40, 14, 14, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), 1),
    "7x7 of 3 channels": (3, 64, 28, 28, (7, 7), (3, 3, 3, 3), (2, 2), (1, 1), 1),
    "dilated, uneven padding": (8, 40, 15, 17, (3, 5), (0, 1, 2, 3), (2, 1), (1, 2), 1),
    "grouped": (32, 64, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 4),
    "grouped, odd channels": (12, 20, 6, 9, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 4),
    "depthwise": (32, 32, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 32),
    "one channel": (1, 24, 12, 12, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
}
