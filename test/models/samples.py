"""Inputs that mean something to the models of the zoo: text rendered to images, files, speech-like sound, pictures."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

Inputs = dict[str, np.ndarray]
TEXTS = ("Hello compiler 2026", "The quick brown fox")
RATE = 16000


def rendered(text: str, height: int, width: int, size: int) -> np.ndarray:
    """Black text on white, `[height, width, 3]` uint8."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), "white")
    font = ImageFont.load_default(size)
    ImageDraw.Draw(image).text((8, (height - size) // 2 - size // 8), text, fill="black", font=font)
    return np.asarray(image)


def _normalized(image: np.ndarray) -> np.ndarray:
    """`[1, 3, height, width]` in [-1, 1]."""
    return ((image.astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]


def line_image(_: Path, number: int) -> Inputs:
    """One line of text, 48 pixels high, as the recognizer takes it."""
    return {"x": _normalized(rendered(TEXTS[number], 48, 320, 32))}


def turned_line(_: Path, number: int) -> Inputs:
    """A line of text for the orientation classifier; the second one is upside down."""
    image = rendered(TEXTS[0], 48, 192, 20)
    return {"x": _normalized(image[::-1, ::-1] if number else image)}


def page_image(_: Path, number: int) -> Inputs:
    """A page with two lines of text for the detector; ImageNet statistics."""
    lines = TEXTS if number == 0 else (TEXTS[1], "")
    image = np.concatenate([rendered(text, 96, 320, 28) for text in lines])
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    scaled = ((image / 255 - mean) / deviation).astype(np.float32)
    return {"x": scaled.transpose(2, 0, 1)[None]}


def decoded(probabilities: np.ndarray, characters: str) -> str:
    """The text of the recognizer's output `[1, steps, classes]`: the best classes without repeats and blanks."""
    alphabet = ["", *characters.split("\n"), " "]
    best = probabilities[0].argmax(-1)
    pairs = zip([0, *best[:-1]], best, strict=True)
    kept = [now for before, now in pairs if now != before]
    return "".join(alphabet[place] for place in kept)


PYTHON = """import sys


def main(arguments: list[str]) -> int:
    for name in arguments:
        with open(name) as file:
            print(len(file.read()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
SHELL = """#!/bin/sh
set -e
for file in *.txt; do
  echo "$file"
  wc -l < "$file"
done
"""
FILES: tuple[bytes, ...] = (
    PYTHON.encode(),
    json.dumps({"name": "value", "list": [1, 2, 3], "nested": {"deep": [True, None, 1.5]}}, indent=2).encode(),
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + zlib.compress(bytes(range(256)) * 8),
    SHELL.encode(),
)


def file_features(content: bytes) -> np.ndarray:
    """The first and the last 1024 bytes of a file, 256 where there are none."""
    begin = list(content.lstrip()[:1024])
    end = list(content.rstrip()[-1024:])
    return np.array(begin + [256] * (1024 - len(begin)) + [256] * (1024 - len(end)) + end, np.int32)


def file_bytes(_: Path, number: int) -> Inputs:
    """Two files in a batch: Python and JSON, then a picture and a shell script."""
    return {"bytes": np.stack([file_features(content) for content in FILES[2 * number : 2 * number + 2]])}


def waveform(seconds: float, pitch: float) -> np.ndarray:
    """A voice-like sound: glottal pulses with a gliding pitch through the resonances of vowels, in syllables."""
    time = np.arange(int(seconds * RATE)) / RATE
    rng = np.random.default_rng(3)
    glide = pitch * (1 + 0.12 * np.sin(2 * np.pi * 1.1 * time) + 0.02 * np.sin(2 * np.pi * 5 * time))
    phase = np.cumsum(glide) / RATE
    pulses = np.diff(np.floor(phase), prepend=0.0) + 0.01 * rng.standard_normal(time.size)
    vowels = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480)]
    sound = np.zeros_like(time)
    span = time.size // len(vowels) + 1
    for number, formants in enumerate(vowels):
        part = slice(number * span, (number + 1) * span)
        sound[part] = sum(_resonance(pulses[part], frequency, 90) for frequency in formants)
    envelope = np.clip(np.sin(2 * np.pi * 2.2 * time) + 0.6, 0, 1)
    sound *= envelope
    return (0.3 * sound / np.abs(sound).max()).astype(np.float32)


def _resonance(signal: np.ndarray, frequency: float, width: float) -> np.ndarray:
    """A second-order resonator, as a convolution with its impulse response."""
    time = np.arange(int(0.04 * RATE)) / RATE
    response = np.exp(-np.pi * width * time) * np.sin(2 * np.pi * frequency * time)
    return np.convolve(signal, response)[: signal.size]


def speech(path: Path, number: int) -> Inputs:
    """One window of sound after 64 samples of context, with the state of a fresh start; then one of faint noise."""
    sound = waveform(1.0, 120.0)
    start = 1600
    window = sound[start : start + 576]
    if number:
        window = 1e-3 * np.random.default_rng(5).standard_normal(576).astype(np.float32)
    state = np.zeros([2, 1, 128], np.float32)
    return {"input": window[None].astype(np.float32), "state": state, "sr": np.array(RATE, np.int64)}


def speech_windows(_: Path, number: int) -> Inputs:
    """Twenty windows in a row with their contexts."""
    sound = waveform(1.2, 120.0 if number == 0 else 210.0)
    starts = 512 * np.arange(20)
    windows = np.stack([sound[start : start + 576] for start in starts])
    zeros = np.zeros([1, 1, 128], np.float32)
    return {"input": windows, "h": zeros, "c": zeros}


def photo(seed: int, size: int = 224) -> np.ndarray:
    """A picture with large and small structures, normalised, `[1, 3, size, size]`."""
    rng = np.random.default_rng(seed)
    image = np.zeros([3, size, size])
    for cells in (4, 16, 56):
        coarse = rng.standard_normal([3, cells, cells])
        image += np.kron(coarse, np.ones([size // cells, size // cells])) * (4 / cells) ** 0.5
    image += 0.1 * rng.standard_normal(image.shape)
    return (image / image.std()).astype(np.float32)[None]
