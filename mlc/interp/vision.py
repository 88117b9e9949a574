"""`nms`, `suppress` and the composite `resize`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlc.interp.dtypes import is_float, widen
from mlc.interp.registry import Call, InterpError, evaluates


def _corners(boxes: np.ndarray, center_point: bool) -> np.ndarray:
    """Boxes `[n, 4]` as (y1, x1, y2, x2) with the lower corner first."""
    if center_point:
        x, y, width, height = boxes.T
        return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=1)
    y1, x1, y2, x2 = boxes.T
    return np.stack([np.minimum(y1, y2), np.minimum(x1, x2), np.maximum(y1, y2), np.maximum(x1, x2)], axis=1)


def _overlaps(boxes: np.ndarray, one: int, others: list[int], threshold: float) -> bool:
    """Whether the intersection over union of box `one` with any of `others` exceeds `threshold`."""
    if not others:
        return False
    rest, box = boxes[others], boxes[one]
    height = np.minimum(rest[:, 2], box[2]) - np.maximum(rest[:, 0], box[0])
    width = np.minimum(rest[:, 3], box[3]) - np.maximum(rest[:, 1], box[1])
    shared = np.maximum(height, 0) * np.maximum(width, 0)
    area = (rest[:, 2] - rest[:, 0]) * (rest[:, 3] - rest[:, 1])
    own = (box[2] - box[0]) * (box[3] - box[1])
    union = area + own - shared
    return bool(np.any((shared > 0) & (area > 0) & (own > 0) & (union > 0) & (shared > threshold * union)))


def _select(boxes: np.ndarray, scores: np.ndarray, limit: int, iou: float, minimum: float | None) -> list[int]:
    """Boxes kept for one batch and class, best score first."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    for candidate in order:
        if len(kept) >= limit:
            break
        if minimum is not None and not scores[candidate] > minimum:
            continue
        if not _overlaps(boxes, int(candidate), kept, iou):
            kept.append(int(candidate))
    return kept


@evaluates("mlc.nms", "boxes scores max_per_class iou_threshold score_threshold")
def nms(
    call: Call,
    boxes: np.ndarray,
    scores: np.ndarray,
    max_per_class: int,
    iou_threshold: np.ndarray,
    score_threshold: np.ndarray,
) -> np.ndarray:
    """Rows (batch, class, box) of the boxes kept, for each batch and class by descending score.

    A box is a candidate when its score is above `score_threshold`; -inf keeps all.
    """
    iou = float(np.asarray(iou_threshold, np.float32).reshape(()))
    minimum = float(np.asarray(score_threshold, np.float32).reshape(()))
    center_point = bool(call.attr("center_point_box", False))
    rows: list[tuple[int, int, int]] = []
    for batch in range(scores.shape[0]):
        corners = _corners(widen(boxes[batch]), center_point)
        for cls in range(scores.shape[1]):
            kept = _select(corners, widen(scores[batch, cls]), int(max_per_class), iou, minimum)
            rows.extend((batch, cls, box) for box in kept)
    return np.asarray(rows, np.int64).reshape(-1, 3)


@evaluates("mlc.suppress", "boxes scores threshold least limit")
def suppress(
    call: Call, boxes: np.ndarray, scores: np.ndarray, threshold: np.ndarray, least: np.ndarray, limit: int
) -> list[np.ndarray]:
    """The boxes `[batches, n, 4]` (corners) that remain of each class, best first, and how many there are."""
    del call
    iou, minimum = (float(np.asarray(x, np.float32).reshape(())) for x in (threshold, least))
    kept, counts = np.zeros(scores.shape, np.int64), np.zeros(scores.shape[:2], np.int64)
    for batch, cls in np.ndindex(*counts.shape):
        found = _select(widen(boxes[batch]), widen(scores[batch, cls]), int(limit), iou, minimum)
        kept[batch, cls, : len(found)], counts[batch, cls] = found, len(found)
    return [kept, counts]


def source_positions(size: int, extent: int, scale: float, coordinate: str) -> np.ndarray:
    """Where each of `size` output coordinates lies in an input dimension of `extent` elements.

    In float32, as onnxruntime does: rounding hides that a float32 scale is not quite the ratio of the sizes.
    """
    of = np.float32
    at, length, factor = np.arange(size, dtype=of), of(extent), of(scale)
    full = factor * length
    if coordinate == "align_corners":
        return np.zeros(size, of) if full == 1 or size == 1 else at * (length - of(1)) / (full - of(1))
    if coordinate == "asymmetric":
        return at / factor
    if coordinate == "tf_half_pixel_for_nn":
        return (at + of(0.5)) / factor
    centered = (at + of(0.5)) / factor - of(0.5)
    if coordinate == "half_pixel_symmetric":
        return length / of(2) * (of(1) - of(size) / full) + centered
    if coordinate == "pytorch_half_pixel" and size == 1:
        return np.full(size, -0.5, of)
    if coordinate in ("half_pixel", "pytorch_half_pixel"):
        return centered
    raise InterpError(f"mlc.resize: unknown coordinate transformation '{coordinate}'")


def nearest_positions(positions: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """The element that each position reads."""
    rounding: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda p: np.ceil(p - 0.5),
        "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    }
    return np.clip(rounding[mode](positions), 0, extent - 1).astype(np.int64)


def _cubic(ratio: np.ndarray, a: float) -> np.ndarray:
    """Weights of the four neighbours at distances 1 + r, r, 1 - r, 2 - r."""
    far, near, back, beyond = ratio + 1, ratio, 1 - ratio, 2 - ratio
    return np.stack(
        [
            ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
            ((a + 2) * near - (a + 3)) * near * near + 1,
            ((a + 2) * back - (a + 3)) * back * back + 1,
            ((a * beyond - 5 * a) * beyond + 8 * a) * beyond - 4 * a,
        ]
    )


def _weights(call: Call, positions: np.ndarray, extent: int) -> np.ndarray:
    """The matrix `[size, extent]` that interpolates one dimension."""
    base = np.floor(positions)
    ratio = positions - base
    if call.need("mode") == "linear":
        neighbours, weights = np.stack([base, base + 1]), np.stack([1 - ratio, ratio])
    else:
        neighbours = np.stack([base - 1, base, base + 1, base + 2])
        weights = _cubic(ratio, float(call.attr("cubic_coeff", -0.75)))
    if call.attr("exclude_outside", False):
        weights = np.where((neighbours < 0) | (neighbours >= extent), 0.0, weights)
        weights = weights / np.sum(weights, axis=0)
    matrix = np.zeros((positions.size, extent))
    rows = np.broadcast_to(np.arange(positions.size), neighbours.shape)
    np.add.at(matrix, (rows, np.clip(neighbours, 0, extent - 1).astype(np.int64)), weights)
    return matrix


@evaluates("mlc.resize", "input scales sizes*")
def resize(call: Call, x: np.ndarray, scales: np.ndarray, sizes: list[int]) -> np.ndarray:
    """`x` resampled to `sizes`, one dimension after the other; `scales` map the coordinates."""
    mode, coordinate = call.need("mode"), call.attr("coordinate", "half_pixel")
    result = widen(x)
    if mode != "nearest" and not is_float(result.dtype):
        result = result.astype(np.float32)
    for axis, size in enumerate(call.mixed("sizes", sizes)):
        extent, scale = x.shape[axis], float(scales[axis])
        if size == extent and scale == 1.0:
            continue
        positions = source_positions(size, extent, scale, coordinate)
        if mode == "nearest":
            at = nearest_positions(positions, extent, call.attr("nearest_mode", "round_prefer_floor"))
            result = np.take(result, at, axis=axis)
            continue
        matrix = _weights(call, positions, extent).astype(result.dtype)
        result = np.moveaxis(np.tensordot(matrix, result, axes=(1, axis)), 0, axis)
    return result if is_float(x.dtype) or mode == "nearest" else np.rint(result)
