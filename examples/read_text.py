#!/usr/bin/env python3
"""Reads a line of text in an image with a compiled neural network.

The model is the text recogniser of PP-OCRv4 (convolutions and attention; 6,625 characters), as the PyPI
package rapidocr-onnxruntime carries it. The script draws text into an image, compiles the model to a
shared library, reads the image, and compares with onnxruntime.

    python examples/read_text.py [TEXT]
"""

from __future__ import annotations

import sys

import numpy as np
from onnx_models import OUT, ROOT, BothEngines, compile_model, packaged_model, require_close
from PIL import Image, ImageDraw, ImageFont

DEFAULT_TEXT = "A compiled model reads this line: 2 + 40 = 42"
HEIGHT = 48
MARGIN = 12
TOLERANCE = 1e-3


def draw(text: str) -> Image.Image:
    """`text` in dark blue on white, 48 pixels high, as wide as it needs."""
    font = ImageFont.load_default(size=34)
    image = Image.new("RGB", (int(font.getlength(text)) + 2 * MARGIN, HEIGHT), "white")
    ImageDraw.Draw(image).text((MARGIN, 4), text, font=font, fill=(20, 20, 60))
    return image


def pixels(image: Image.Image) -> np.ndarray:
    """The model's input: `[1, 3, 48, width] f32`, blue green red, from -1 to 1."""
    bgr = np.asarray(image, dtype=np.float32)[:, :, ::-1]
    return np.ascontiguousarray(bgr.transpose(2, 0, 1)[None] / 127.5 - 1)


def decode(probabilities: np.ndarray, alphabet: list[str]) -> str:
    """The best path of `[steps, characters]` (CTC): repeated symbols count once, symbol 0 is a blank."""
    best = probabilities.argmax(axis=1)
    fresh = np.diff(best, prepend=0) != 0
    return "".join(alphabet[index] for index in best[fresh & (best != 0)]).strip()


def main() -> int:
    text = " ".join(sys.argv[1:]) or DEFAULT_TEXT
    model = packaged_model("rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx")
    print("What does the image say? A pretrained text recogniser, compiled and run\n")
    library = OUT / "read_text.so"
    compile_model(model, library)

    image = draw(text)
    picture = OUT / "read_text.png"
    image.save(picture)
    value = pixels(image)
    engines = BothEngines(model, library)
    alphabet = ["", *engines.session.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]
    ours, theirs = engines.run_compiled("x", value), engines.run_onnxruntime("x", value)

    print(f"image            {picture.relative_to(ROOT)} ({image.width} x {image.height} pixels)")
    print(f"drawn into it    {text}")
    print(f"mlc reads        {decode(ours[0], alphabet)}")
    print(f"onnxruntime      {decode(theirs[0], alphabet)}\n")
    require_close(ours, theirs, TOLERANCE)
    print(engines.compare_speed("x", value))
    return 0


if __name__ == "__main__":
    sys.exit(main())
