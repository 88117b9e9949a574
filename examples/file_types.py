#!/usr/bin/env python3
"""Names the types of this repository's own files with a compiled neural network.

The model is Google's magika (a text and byte classifier with 214 classes), as its PyPI package carries
it. It is compiled to a shared library, run on a batch of files, and compared with onnxruntime on the
same bytes.

    python examples/file_types.py [FILE ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from onnx_models import OUT, ROOT, BothEngines, compile_model, packaged_model, require_close

FOLDER = "models/standard_v3_3"
OWN_FILES = (
    *("README.md", "Makefile", "LICENSE", "pyproject.toml", "CMakeLists.txt", "mlc/__init__.py"),
    *("mlc/runtime/include/mlc.h", "examples/requirements.txt", ".gitignore", ".ci/run", "mypy.ini"),
)
TOLERANCE = 1e-4


def features(content: bytes, config: dict[str, int]) -> np.ndarray:
    """The model's input `[2048] i32`: the first and last 1,024 bytes, outer spaces off, padding 256."""
    begin_size, end_size = config["beg_size"], config["end_size"]
    begin = content[: config["block_size"]].lstrip()[:begin_size]
    end = content[-config["block_size"] :].rstrip()[-end_size:]
    row = np.full(begin_size + end_size, config["padding_token"], dtype=np.int32)
    row[: len(begin)] = np.frombuffer(begin, dtype=np.uint8)
    row[len(row) - len(end) :] = np.frombuffer(end, dtype=np.uint8)
    return row


def main() -> int:
    model = packaged_model("magika", f"{FOLDER}/model.onnx")
    config = json.loads(packaged_model("magika", f"{FOLDER}/config.min.json").read_text(encoding="utf-8"))
    labels = config["target_labels_space"]

    print("What kind of file is it? A pretrained classifier, compiled and run on this repository\n")
    library = OUT / "magika.so"
    compile_model(model, library)

    files = [Path(name) for name in sys.argv[1:]]
    files = files or [ROOT / name for name in OWN_FILES if (ROOT / name).exists()] + [model, library]
    batch = np.stack([features(path.read_bytes(), config) for path in files])
    engines = BothEngines(model, library)
    ours, theirs = engines.run_compiled("bytes", batch), engines.run_onnxruntime("bytes", batch)

    print(f"{'file':<32} {'mlc says':<16} sure    {'onnxruntime says':<16}")
    for path, ours_row, theirs_row in zip(files, ours, theirs, strict=True):
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) and path != model else Path(path.name)
        best, reference = int(ours_row.argmax()), int(theirs_row.argmax())
        print(f"{name!s:<32} {labels[best]:<16} {ours_row[best]:5.1%}  {labels[reference]:<16}")
    print()
    require_close(ours, theirs, TOLERANCE)
    print(engines.compare_speed("bytes", batch[:1]))
    print(engines.compare_speed("bytes", batch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
