"""Passes written in Python: by name in pipelines, with options, statistics, errors; the registry."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlir import ir

import mlc.compiler_setup  # noqa: F401
from mlc import _native
from mlc.passes.base import _KINDS, Pass, PassInfo, PipelineError, discover, run_pipeline
from mlc.passes.base import _read as read_pass

SOURCE = '''
"""A module."""
from mlc.passes.base import Pass

BOUND = 3


class Helper:
    """No pass."""


class TestRename(Pass):
    """Renames functions.

    More words.
    """

    dialects = ("arith", "func")
    statistics = {"renamed": "functions renamed"}
    suffix: str = "_x"
    """What is appended."""
    times: int = 1
    loud: bool = False
    factor: float = 0.5
    only: list[str] = []
    other: dict = {}

    def run(self, op):
        pass


def after():
    return BOUND
'''


def parse(tmp_path: Path, source: str, stem: str = "test_rename") -> PassInfo | None:
    path = tmp_path / f"{stem}.py"
    path.write_text(source)
    return read_pass(path, "phase")


def test_source_says_what_a_pass_is(tmp_path: Path) -> None:
    info = parse(tmp_path, SOURCE)
    assert info is not None
    assert (info.name, info.class_name) == ("mlc-test-rename", "TestRename")
    assert info.module == "mlc.passes.phase.test_rename"
    assert info.summary == "Renames functions."
    assert info.description.endswith("More words.")
    assert info.anchor == "builtin.module"
    assert info.dialects == ("arith", "func")
    assert info.statistics == [("renamed", "functions renamed")]
    assert info.options == [
        ("suffix", "What is appended.", "_x", 0),
        ("times", "", "1", 1),
        ("loud", "", "false", 2),
        ("factor", "", "0.5", 4),
        ("only", "", "", 3),
    ]
    assert parse(tmp_path, "class Helper:\n    pass\n") is None


def test_every_pass_loads_and_says_what_it_does() -> None:
    passes = discover()
    assert passes
    for name, info in passes.items():
        cls = info.load()
        assert issubclass(cls, Pass), name
        assert cls.name == name
        assert info.summary.endswith("."), f"{name}: the summary is no sentence"
        assert cls.run is not Pass.run, name
        # The source is read up to the first method: nothing that says something of the pass stands behind it.
        annotated = vars(cls).get("__annotations__", {})
        options = {option.attribute: option.annotation for option in info.option_list}
        assert options == {key: kind for key, kind in annotated.items() if kind in _KINDS}, name
        assert all(hasattr(cls, attribute) for attribute in options), name
        assert (cls.anchor, cls.dialects, cls.statistics) == (info.anchor, info.dialects, info.statistic_map), name


class Recorder(Pass):
    """What the tests run."""

    statistics = {"seen": "functions seen"}
    suffix: str = "_x"
    times: int = 1
    loud: bool = False
    factor: float = 0.5
    only: list[str] = []
    mode: str = "rename"

    def run(self, op: Any) -> None:
        assert isinstance(op, ir.OpView)
        if self.mode == "raise":
            raise ValueError("the reason")
        if self.mode == "nested":
            run_pipeline(op, "no-such-pass")
        if self.mode == "twins":  # two functions of one name, which the verifier does not take
            for function in op.body.operations:
                function.attributes["sym_name"] = ir.StringAttr.get("f")
            run_pipeline(op, "cse")
        for function in op.body.operations:
            self.count("seen")
            if self.mode == "fail":
                self.fail("cannot rename this", function)
                return
            name = function.attributes["sym_name"].value
            values = f"{self.suffix * self.times}_{self.loud}_{self.factor}_{'.'.join(self.only)}"
            function.attributes["sym_name"] = ir.StringAttr.get(name + values)


@dataclass
class Spec:
    """What `_native.register_pass` reads of a PassInfo."""

    name: str = "mlc-test-recorder"
    summary: str = "What the tests run."
    anchor: str = "builtin.module"
    dialects: tuple[str, ...] = ()
    statistics: list[tuple[str, str]] = field(default_factory=lambda: [("seen", "functions seen")])
    options: list[tuple[str, str, str, int]] = field(
        default_factory=lambda: [
            ("suffix", "", "_x", 0),
            ("times", "", "1", 1),
            ("loud", "", "false", 2),
            ("factor", "", "0.5", 4),
            ("only", "", "", 3),
            ("mode", "", "rename", 0),
        ]
    )

    def create(self, texts: list[str]) -> Pass:
        suffix, times, loud, factor, only, mode = texts
        return Recorder(
            suffix=suffix,
            times=int(times),
            loud=loud == "true",
            factor=float(factor),
            only=[entry for entry in only.split(",") if entry],
            mode=mode,
        )


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    _native.register_pass(Spec())


MODULE = 'func.func @f() { return }\nfunc.func @g() { return } loc("node/g")'


def functions(module: ir.Module) -> list[str]:
    return [function.attributes["sym_name"].value for function in module.body.operations]


def test_a_pass_runs_by_name() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        run_pipeline(module, "canonicalize,mlc-test-recorder,cse")
        assert functions(module) == ["f_x_False_0.5_", "g_x_False_0.5_"]


@pytest.mark.parametrize("verify", [True, False])
def test_a_pipeline_in_a_pass_is_verified_like_the_one_around_it(verify: bool) -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        pipeline = "mlc-test-recorder{mode=twins}"
        if verify:
            with pytest.raises(PipelineError, match="redefinition of symbol"):
                run_pipeline(module, pipeline, verify=True)
        else:
            run_pipeline(module, pipeline, verify=False)
            assert functions(module) == ["f_x_False_0.5_"] * 2
        with pytest.raises(PipelineError, match="redefinition of symbol"):  # what was said above holds no longer
            run_pipeline(ir.Module.parse(MODULE), pipeline)


def test_options() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        run_pipeline(
            module, ["mlc-test-recorder{suffix=_y times=2 loud=true factor=1e-3 only=a,b}", "func.func(cse)"]
        )
        assert functions(module) == ["f_y_y_True_0.001_a.b", "g_y_y_True_0.001_a.b"]


def test_a_failure_is_an_error_at_the_operation() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        with pytest.raises(PipelineError, match="cannot rename this") as caught:
            run_pipeline(module, "mlc-test-recorder{mode=fail}")
        assert len(caught.value.errors) == 1
        assert functions(module) == ["f", "g"]


def test_an_exception_is_an_error_with_its_traceback() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        with pytest.raises(PipelineError, match="(?s)mlc-test-recorder: .*ValueError: the reason") as caught:
            run_pipeline(module, "mlc-test-recorder{mode=raise}")
        assert "test_passes.py" in str(caught.value)
        assert isinstance(caught.value.__cause__, ValueError)
        with pytest.raises(PipelineError) as caught:
            run_pipeline(module, "mlc-test-recorder{mode=fail}")
        assert caught.value.__cause__ is None


def test_upstream_errors_have_their_location() -> None:
    with ir.Context():
        module = ir.Module.parse(
            'func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n'
            '%0 = mlc.reshape %x [4] : tensor<4xf32> -> tensor<4xf32> loc("encoder/flat")\n return %0 : tensor<4xf32> }'
        )
        broken = module.body.operations[0].regions[0].blocks[0].operations[0]
        broken.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get([5])
        with pytest.raises(PipelineError, match='"encoder/flat".*operands give'):
            run_pipeline(module, "symbol-dce")


def test_an_unknown_pass_is_a_value_error() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        with pytest.raises(ValueError, match="no-such-pass"):
            run_pipeline(module, "no-such-pass")


def test_threads_run_pipelines_at_the_same_time() -> None:
    """Each with a context of its own; Python passes take turns with the GIL and never wait for each other forever."""
    results: list[list[str]] = []

    def work() -> None:
        with ir.Context():
            module = ir.Module.parse(MODULE)
            for _ in range(20):
                run_pipeline(module, "func.func(cse),mlc-test-recorder{suffix=}")
            results.append(functions(module))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(results) == 4
    assert all(names == results[0] for names in results)


def test_direct_use() -> None:
    with ir.Context():
        module = ir.Module.parse(MODULE)
        Recorder(suffix="_direct").run(module.operation.opview)
        assert functions(module)[0].startswith("f_direct")
    with pytest.raises(TypeError, match="no option 'sufix'"):
        Recorder(sufix="")


def opt(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlc.cli.opt", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_help_is_quick_and_lists_every_pass() -> None:
    program = (
        "import resource, subprocess, sys;"
        "subprocess.run([sys.executable, '-m', 'mlc.cli.opt', '--help'], check=True);"
        "usage = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print('SECONDS', usage.ru_utime + usage.ru_stime)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for name in discover():
        assert f"--{name} " in result.stdout, name
    assert "--canonicalize " in result.stdout
    seconds = float(result.stdout.rsplit("SECONDS", 1)[1])
    assert seconds < 0.5, f"{seconds} s of processor time"


def test_help_imports_no_pass() -> None:
    program = (
        "import sys; import mlc.compiler_setup;"
        "print([name for name in sys.modules if re.match(r'mlc\\.passes\\.\\w+\\.', name)])"
    )
    result = subprocess.run(
        [sys.executable, "-c", "import re;" + program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_opt_prints_and_fails_as_mlir_opt_does() -> None:
    good = opt("-", "--canonicalize", text="func.func @f() { return }")
    assert good.returncode == 0
    assert "func.func @f()" in good.stdout
    bad = opt("-", text="func.func @f() { return %x : i32 }")
    assert bad.returncode == 1
    assert re.search(r"error: use of undeclared SSA value name", bad.stderr)


def test_importing_mlc_imports_nothing_heavy() -> None:
    program = "import sys, mlc; print({'numpy', 'mlir', 'onnx', 'typer'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
