#!/usr/bin/env python3
"""Decoders with weights of few bits, as onnxruntime's model builder writes them: mlc against the engines installed.

    python bench/decoders.py                                   # TinyLlama's sizes, six of its layers
    python bench/decoders.py --layers 22 --threads 1,2         # all of them
    python bench/decoders.py --past 511,4000 --tokens 16,1000  # other places of a token, other lengths of a text
    python bench/decoders.py --accuracy-level 1                # rows stay floats
    python bench/decoders.py --room 4096 --peers onnxruntime   # caches for 4096 positions, updated where they lie

The model (`test/models/genai.py`) has random weights. `mlc-bench` times it twice: a token behind a text (`--past`), and
a text from its beginning (`--tokens`); what it prints is described there. Exits with its code when a run fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "test"))

from models.genai import Decoder, decoder

TOLERANCE = 0.1  # of the largest logit: engines round rows in ways of their own, which moves logits by some hundredths


def numbers(text: str) -> list[int]:
    """`1,7` -> numbers."""
    return [int(part) for part in text.split(",")]


def cases(past: Sequence[int], tokens: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Lengths of what is cached and of what is new: a token behind each of `past`, and texts of `tokens`."""
    yield from ((before, 1) for before in past)
    yield from ((0, count) for count in tokens)


def command(model: Path, words: int, past: int, tokens: int, room: int, options: Sequence[str]) -> list[str]:
    """The call of `mlc-bench` for one case; caches have `room`, or grow."""
    dims = {"batch": 1, "past": room or past, "tokens": tokens, "total": past + tokens}
    inputs = {"attention_mask": f"1x{past + tokens}:1:2", "input_ids": f"1x{tokens}:0:{words}"}
    given = [f"--dim={name}={extent}" for name, extent in dims.items()]
    given += [f"--input={name}={value}" for name, value in inputs.items()]
    shared = ["--share"] if room else []
    return [sys.executable, "-m", "mlc.cli.bench", str(model), *given, f"--tolerance={TOLERANCE}", *options, *shared]


def main(arguments: Sequence[str] | None = None) -> int:
    sizes = Decoder()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=sizes.layers)
    parser.add_argument("--heads", type=int, default=sizes.heads, help="of queries; all else is wide in proportion")
    parser.add_argument("--bits", type=int, default=sizes.bits, choices=(2, 4, 8))
    parser.add_argument("--block", type=int, default=sizes.block)
    parser.add_argument("--accuracy-level", type=int, default=sizes.accuracy_level, choices=(0, 1, 4))
    parser.add_argument("--words", type=int, default=sizes.words)
    parser.add_argument("--past", type=numbers, default=[511])
    parser.add_argument("--tokens", type=numbers, default=[128])
    parser.add_argument("--room", type=int, default=0, help="positions of caches that are inputs and outputs in one")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=float, default=0.4)
    parser.add_argument("--peers", default="onnxruntime,openvino")
    a = parser.parse_args(arguments)
    longest = max(sizes.longest, *(past + tokens for past, tokens in cases(a.past, a.tokens)))
    kept = {name: getattr(a, name) for name in ("layers", "bits", "block", "accuracy_level", "words")}
    model = decoder(replace(sizes.scaled(a.heads), **kept, longest=longest))
    options = [f"--threads={a.threads}", f"--rounds={a.rounds}", f"--burst={a.burst}", f"--peers={a.peers}"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.onnx"
        onnx.save(model, path)
        for past, tokens in cases(a.past, a.tokens):
            code = subprocess.run(command(path, a.words, past, tokens, a.room, options), check=False).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
