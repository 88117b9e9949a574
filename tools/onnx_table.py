"""The part of docs/operators.md about ONNX: for each operator its importer, what it becomes, its types and its tests.

Facts come from where they are checked: importers from their registry, types from the schemas of the installed `onnx`
and the list of refused ones (test/conformance/test_targets.py compiles them), results from the cases of the backend
suite and the list of expected failures (`make test-onnx` runs them), what an operator becomes from its smallest case.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pages import ROOT

CONFORMANCE = ROOT / "test" / "conformance"
sys.path.insert(0, str(CONFORMANCE))

MARK = "## Operators of ONNX"
NOT_HELD = ("complex64", "complex128")
NO_OPERATIONS = {  # symbols and attributes
    "constant", "weight", "dims", "dim_ranges", "dtype", "name", "source", "store", "seq", "optional", "str"
}  # fmt: skip
CONTRIB = "com.microsoft"
# What onnxruntime's domain has besides, and why it is not here.
MISSING = {
    "ai.onnx.preview.training.Gradient": "models are compiled for inference",
    "ImageDecoder": "image files are decoded outside of the model",
}
ABSENT = {
    "BeamSearch, GreedySearch, Sampling, WhisperBeamSearch": "loops around whole models: the caller's",
    "PackedAttention, PackedMultiHeadAttention, PagedAttention, SparseAttention, LongformerAttention, "
    "DecoderMaskedSelfAttention, DecoderMaskedMultiHeadAttention": "written by onnxruntime for its own GPU kernels",
    "QOrderedMatMul, QOrderedAttention, QOrderedGelu, QOrderedLayerNormalization": "layouts of one GPU library",
    "MatMulBnb4, MatMulFpQ4, GemmFloat8": "formats that no exporter writes any more",
    "Tokenizer": "the words of scikit-learn's text vectorizers: to be done",
    "WordConvEmbedding, MurmurHash3, NGramRepeatBlock": "preprocessing",
    "Inverse, Rfft, Irfft, ComplexMul, CropAndResize": "ONNX has them in other words (DFT, RoiAlign)",
}


def importer(domain: str, name: str, version: int, schema: Any) -> str:
    """The file that imports an operator, or that its schema's function body is expanded."""
    from mlc.frontends.onnx.registry import find

    handler = find(domain, name, version)
    if handler is not None:
        return handler.__module__.rsplit(".", 1)[1]
    if schema is not None and (schema.has_function or schema.has_context_dependent_function):
        return "*function body*"
    return "–"


def becomes(model: Any) -> str:
    """The operations that a model is made of after import, but for constants and sizes."""
    from mlir import ir

    import mlc.compiler_setup  # noqa: F401
    from mlc.frontends.onnx import import_model
    from mlc.frontends.report import ModelError
    from mlc.weights import Store

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = str(import_model(model, ir.Context(), store=Store()))
    except ModelError:
        return "–"
    names = Counter(re.findall(r"\bmlc\.(\w+)", text))
    shown = [name for name in names if name not in NO_OPERATIONS]
    return ", ".join(f"`{name}`" for name in sorted(shown)) or "(a constant)"


def refused() -> dict[str, set[str]]:
    """Operator to `parameter type` pairs that are refused."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / "test/conformance/refused_types.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, parameter, kind = line.split(":")[0].split()
            found.setdefault(name, set()).add(f"{parameter} {kind}")
    return found


def types_of(label: str, schema: Any, exceptions: dict[str, set[str]]) -> str:
    """How many types the type parameters of a schema allow, and how many of them are compiled."""
    allowed = [
        (c.type_param_str, text.removeprefix("tensor(").removesuffix(")"))
        for c in schema.type_constraints
        for text in c.allowed_type_strs
        if text.startswith("tensor(")
    ]
    absent = exceptions.get(label, set())
    held = [pair for pair in allowed if pair[1] not in NOT_HELD and " ".join(pair) not in absent]
    missing = sorted({pair[1] for pair in allowed} & set(NOT_HELD)) and ["complex"]
    missing += [f"`{entry}`" for entry in sorted(absent)]
    return f"{len(held)} of {len(allowed)}" + (f": not {', '.join(missing)}" if missing else "")


def results_of(operator: Any, expected: dict[str, str]) -> str:
    """Passing cases of the suite, and why the others do not pass."""
    if not operator.cases:
        return "no case"
    failing = [expected[case.name] for case in operator.cases if case.name in expected]
    passing = f"{len(operator.cases) - len(failing)} of {len(operator.cases)}"
    reasons = sorted({reason.split(":")[0] if ":" in reason else reason for reason in failing})
    return passing + (f" ({'; '.join(reasons)})" if reasons else "")


def tested(name: str, files: dict[str, str]) -> str:
    """The test files that name an operator."""
    used = re.compile(rf'"{name}"|= {name}[(<]')  # built node by node, or in the text form of models
    return ", ".join(stem for stem, text in files.items() if used.search(text))


def test_files() -> dict[str, str]:
    """The text of the tests that build single nodes, by stem."""
    folders = ("test/conformance", "test/python/frontends/onnx", "test/python/passes/simplify")
    paths = [path for folder in folders for path in sorted((ROOT / folder).glob("test_*.py"))]
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def standard() -> Iterator[str]:
    """The rows of ONNX's own operators."""
    from onnx import defs

    cases = importlib.import_module("operator_cases")
    expected_failures = importlib.import_module("onnx_suite").expected_failures
    operators, smallest = cases.operators, cases.smallest
    expected, exceptions, files = expected_failures(), refused(), test_files()
    versions: dict[tuple[str, str], list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    yield "| operator | opsets | importer | becomes | types | backend suite | other tests |"
    yield "|---|---|---|---|---|---|---|"
    for key, operator in operators().items():
        case = smallest(operator)
        newest = max(versions[key])
        cells = [
            f"`{operator.label}`",
            ", ".join(map(str, sorted(versions[key]))),
            importer(operator.domain, operator.name, newest, operator.schema),
            becomes(case.source.model) if case else "–",
            types_of(operator.label, operator.schema, exceptions),
            MISSING.get(operator.label) or results_of(operator, expected),
            tested(operator.name, files) or "–",
        ]
        yield "| " + " | ".join(cells) + " |"


def contrib() -> Iterator[str]:
    """The rows of onnxruntime's domain."""
    from mlc.frontends.onnx import operators as _families  # noqa: F401
    from mlc.frontends.onnx.registry import supported

    files = test_files()
    yield "| operator | status | importer | test |"
    yield "|---|---|---|---|"
    for domain, name in supported():
        if domain == CONTRIB:
            yield f"| `{name}` | compiled | {importer(domain, name, 1, None)} | {tested(name, files) or '–'} |"
    for names, reason in ABSENT.items():
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        yield f"| {shown} | refused: {reason} | – | – |"


def section() -> str:
    """The whole part of the page."""
    import onnx

    lines = [
        MARK,
        "",
        f"Of onnx {onnx.__version__}. The importer is a file of `mlc/frontends/onnx`; where a schema's function body",
        "serves instead, its nodes are imported. `becomes` is what the smallest case of the suite is after import: the",
        "tables above show how each of these is decomposed, lowered and run. Types are those that the schema allows.",
        "Where older versions mean something else they have importers of their own. The backend suite's cases run",
        "compiled (`make test-onnx`); `random` and `nearer` are results that cannot match and are right all the same",
        "(test/conformance/onnx_judge.py). Both targets accept the same operators and types",
        "(test/conformance/test_targets.py): what has no GPU kernel runs on the host.",
        "",
        *standard(),
        "",
        "Types that are refused, with reasons: test/conformance/refused_types.txt.",
        "",
        f"## Operators of {CONTRIB}",
        "",
        "Those that onnxruntime's optimizers and exporters write. Each is compared with onnxruntime, or with NumPy",
        "where onnxruntime has GPU kernels only.",
        "",
        *contrib(),
        "",
    ]
    return "\n".join(lines)


def version_of(page: str) -> str:
    """The version of onnx that a page was made with, empty when it has no such part."""
    match = re.search(r"^Of onnx (\S+)\. ", page, re.M)
    return match.group(1) if match else ""
