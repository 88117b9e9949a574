"""Strings: routines of the runtime and moves by kernels, compiled, against Python's own strings."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest

import mlc
from mlc.frontends.report import ModelError
from mlc.runtime import MlcError

HEAD = '<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 4]>\n'


def strings(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


def compiled(text: str) -> mlc.Model:
    return mlc.compile(onnx.parser.parse_model(HEAD + text))


def test_moves() -> None:
    """Reshape, Transpose, Gather, Concat and If of strings, of any length and of none."""
    model = compiled("""g (string[2,n] x, int64[m] i, bool c) => (string[k,m] y)
      {
        t = Transpose(x)
        both = Concat<axis = 0>(t, t)
        wide = Transpose(both)
        flat = If (c) <
          then_branch = a () => (string[2,p] one) { one = Identity(wide) },
          else_branch = b () => (string[2,p] two) { two = StringConcat(wide, wide) }
        >
        picked = Gather<axis = 0>(flat, i)
        y = Transpose(picked)
      }""")
    x = strings("a", "", "grüße " * 20, "d" * 300, "e", "ζ").reshape(2, 3)
    for condition in (True, False):
        wide = np.concatenate([x, x], 1)
        wanted = (wide if condition else wide + wide)[[1, 1, 0]].T
        got = model(x=x, i=np.array([1, -1, 0], np.int64), c=np.array(condition))[0]
        assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize(("delimiter", "most"), [("", -1), ("", 1), (",", -1), (", ", 2), ("ü", -1)])
def test_split(delimiter: str, most: int) -> None:
    model = compiled(f"""g (string[n] x) => (string[n,k] y, int64[n] z)
      {{ y, z = StringSplit<delimiter = "{delimiter}", maxsplit = {most}>(x) }}""")
    x = ["a b,c, d", "", "  x\ty  z ", ",,", "müde, grün, ü", "one"]
    parts = [text.split(delimiter or None, most) for text in x]
    y, z = model(x=strings(*x))
    assert z.tolist() == [len(part) for part in parts]
    assert y.tolist() == [[*part, *[""] * (max(z) - len(part))] for part in parts]


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalizer(action: str, sensitive: int) -> None:
    words = ["Übung", "ÀÉÎ", "Ÿ", "straße", "ΑΒΓς", "Άέ", "Жук", "Ёж", "ŽŠż", "Ǆ", "日本", "the", "THE", "\x00\x7f"]
    model = compiled(f"""g (string[n] x) => (string[m] y) {{ y = StringNormalizer<case_change_action = "{action}",
      is_case_sensitive = {sensitive}, stopwords = ["the", "жук"]>(x) }}""")
    stop = {"the", "жук"}
    kept = [word for word in words if (word if sensitive else word.lower()) not in stop]
    change = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}[action]
    # Letters that become several, and digraphs, keep their case.
    wanted = [word if word in ("straße", "Ǆ") and action != "NONE" else change(word) for word in kept]
    wanted = ["STRAßE" if word == "straße" and action == "UPPER" else word for word in wanted]
    assert model(x=strings(*words))[0].tolist() == wanted
    assert model(x=strings("the", "the"))[0].tolist() == [""]


def test_equal_broadcasts_at_run_time() -> None:
    model = compiled("g (string[n,1] x, string[m] y) => (bool[n,m] z) { z = Equal(x, y) }")
    x, y = strings("a", "bc", ""), strings("bc", "", "d", "a")
    got = model(x=x.reshape(3, 1), y=y)[0]
    np.testing.assert_array_equal(got, x.reshape(3, 1) == y)
    model = compiled("g (string[n] x, string[m] y) => (bool[k] z) { z = Equal(x, y) }")
    assert model(x=x, y=strings("a"))[0].tolist() == [True, False, False]
    with pytest.raises(MlcError, match="shape"):
        model(x=x, y=y)


def test_labels_both_ways() -> None:
    model = compiled("""g (string[n] x) => (string[n] z) {
      y = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "bb", "a"], values_int64s = [4, 5, 6], default_int64 = 9>(x)
      z = ai.onnx.ml.LabelEncoder<keys_int64s = [5, 9], values_strings = ["five", "none"], default_string = "?">(y)
    }""")
    assert model(x=strings("bb", "a", "", "b"))[0].tolist() == ["five", "?", "none", "none"]


def test_arithmetic_is_rejected() -> None:
    with pytest.raises(Exception, match="Less"):
        compiled("g (string[n] x) => (bool[n] y) { y = Less(x, x) }")


PATTERNS = [
    r"www\.[\w.-]+\.\bcom\b",
    r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
    r"a|b*c|(?:de)+?",
    r"[^a-cü]{2,3}\d?",
    r"(a?){3}a{3}",
    r"^\Bx$|\by\b",
    r".*",
    r"[]a\]-]+\x41\x{dc}",
    r"a{,2}|\s+\S|",
]
TEXTS = [
    "www.google.com",
    "www.bbc.co.uk",
    "a@gmail.com",
    " a.b@yahoo.com ",
    "aaa",
    "aaaaaa",
    "c",
    "bbc",
    "dede",
    "ded",
]
TEXTS += ["", "xyz7", "üü", "xü", "x", "y", "a\nb", "日本語", "]-aAÜ", "a{,2}", " \tx", "  "]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_like_python(pattern: str) -> None:
    """Python's `re` in its ASCII mode agrees with RE2 on what these patterns use."""
    node = onnx.helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, ["n"])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, ["n"])
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    model = mlc.compile(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]))
    python = re.compile(pattern.replace(r"\x{dc}", "Ü").replace("a{,2}", r"a\{,2\}"), re.ASCII)
    wanted = [python.fullmatch(text) is not None for text in TEXTS]
    assert model(x=strings(*TEXTS))[0].tolist() == wanted


@pytest.mark.parametrize("pattern", ["(a", "a)", "*a", "[a", "a{3,1}", r"(a)\1", "(?i)a", "(?=a)", r"\pL", "a{2000}"])
def test_patterns_that_are_rejected(pattern: str) -> None:
    with pytest.raises(ModelError, match="RegexFullMatch"):
        compiled(f"g (string[n] x) => (bool[n] y) {{ y = RegexFullMatch<pattern = {json.dumps(pattern)}>(x) }}")
