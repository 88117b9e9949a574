"""Passes written in Python: the base class, and the registry that finds them.

A pass is the only subclass of `Pass` in `mlc/passes/<phase>/<stem>.py` (or the package `<stem>/__init__.py`) and is
called `mlc-<stem>` with dashes. Listing the passes reads their source text; a pass module is imported when a pipeline
makes the pass, so that `mlc-opt --help` imports none.
"""

from __future__ import annotations

import ast
import importlib
import re
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

_KINDS = {"str": 0, "int": 1, "bool": 2, "list[str]": 3, "float": 4}


class Pass(ABC):
    """A transformation of an operation, by default of a module.

    The first line of a subclass's docstring is its summary. Annotated class attributes (`str`, `int`, `bool`, `float`,
    `list[str]`) with a default are options; a string literal below one describes it. All of them come before methods.
    """

    name: ClassVar[str] = ""  # set by the registry
    anchor: ClassVar[str] = "builtin.module"  # "" = any operation
    dialects: ClassVar[tuple[str, ...]] = ()  # loaded before the pass runs: those whose operations it makes
    statistics: ClassVar[dict[str, str]] = {}  # name -> description

    _handle: Any = None

    def __init__(self, **options: Any) -> None:
        """Sets options by keyword, for use without a pass manager."""
        for name, value in options.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no option {name!r}")
            setattr(self, name, value)

    @abstractmethod
    def run(self, op: Any) -> None:
        """Transforms `op`, an `OpView` of the anchor's operation. Raising an exception fails the pass."""

    def fail(self, message: str = "", op: Any = None) -> None:
        """Fails the pass, with an error at the location of `op` if there is a message."""
        if message:
            (op.location if op is not None else _current_location()).emit_error(message)
        if self._handle is None:
            raise PipelineError([message or f"{self.name or type(self).__name__} failed"])
        self._handle.signal_failure()

    def count(self, statistic: str, amount: int = 1) -> None:
        """Adds to a statistic (`mlc-opt --mlir-pass-statistics` prints them)."""
        if self._handle is not None:
            self._handle.add(list(self.statistics).index(statistic), amount)

    def preserve_all(self) -> None:
        """Says that the pass changed nothing."""
        if self._handle is not None:
            self._handle.preserve_all()

    def _run(self, op: Any, handle: Any) -> None:
        """Called by the native pass; the handle is valid during the call only."""
        self._handle = handle
        try:
            with op.context, op.location:
                self.run(op.opview)
        except Exception as error:
            _raised.error = error
            raise
        finally:
            self._handle = None


def _current_location() -> Any:
    from mlir import ir

    return ir.Location.current


# The last exception of a pass in this thread: MLIR carries its text only.
_raised = threading.local()


class PipelineError(Exception):
    """A pass failed; `errors` are the located diagnostics.

    `__cause__` is the exception that a pass written in Python raised, if that was the reason.
    """

    def __init__(self, errors: Sequence[str]) -> None:
        self.errors = list(errors)
        super().__init__("\n".join(self.errors) or "a pass failed without a diagnostic")


# Whether MLIR's verifier looks at what every pass of the running pipeline of this thread leaves.
_verifies = threading.local()


def run_pipeline(op: Any, pipeline: str | Sequence[str], *, verify: bool | None = None) -> None:
    """Runs passes on `op`, a module or other operation, without holding the GIL.

    MLIR's verifier looks at it after every pass with `verify`. Where that is not said, it does so unless a pass of a
    pipeline that is not verified calls this.

    `pipeline` is a text or list of passes (`"canonicalize"`, `"func.func(cse)"`, `"mlc-fold-constants{limit=64}"`) for
    the operation. Raises PipelineError with the diagnostics when a pass fails, ValueError when the text does not parse.
    """
    from mlir.passmanager import PassManager

    import mlc.compiler_setup  # noqa: F401
    from mlc import _native

    op = op.operation
    passes = pipeline if isinstance(pipeline, str) else ",".join(pipeline)
    text = passes if passes.startswith(f"{op.name}(") else f"{op.name}({passes})"
    with op.context:
        manager = PassManager.parse(text)
    outer = getattr(_verifies, "now", True)
    _verifies.now = outer if verify is None else verify
    manager.enable_verifier(_verifies.now)
    _raised.error = None
    try:
        succeeded, errors = _native.run_pipeline(manager, op)
    finally:
        _verifies.now = outer
    if not succeeded:
        raise PipelineError(errors) from _raised.error


def verify_operation(op: Any) -> None:
    """Runs MLIR's verifier on `op`. Raises PipelineError with the diagnostics of what is invalid."""
    from mlir import ir

    try:
        op.operation.verify()
    except ir.MLIRError as error:
        raise PipelineError([f"{d.location}: {d.message}" for d in error.error_diagnostics]) from error


def describe_exception(error: BaseException) -> str:
    """The text of an exception in a pass for its diagnostic: the message where it is ours, else the traceback."""
    if isinstance(error, PipelineError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()


# --- The registry -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option of a pass; `kind` indexes the native option kinds."""

    attribute: str
    annotation: str
    default: str
    description: str

    @property
    def flag(self) -> str:
        """Its name in a pipeline."""
        return self.attribute.replace("_", "-")

    def parse(self, text: str) -> Any:
        """The value of the attribute from the pipeline's text."""
        match self.annotation:
            case "bool":
                return text == "true"
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "list[str]":
                return [entry for entry in text.split(",") if entry]
        return text


@dataclass(frozen=True)
class PassInfo:
    """What the source text of a pass says about it."""

    name: str
    module: str
    class_name: str
    summary: str
    description: str
    phase: str
    anchor: str = "builtin.module"
    dialects: tuple[str, ...] = ()
    option_list: tuple[Option, ...] = ()
    statistic_map: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> list[tuple[str, str, str, int]]:
        """Name, description, default and kind of each option, for the native side."""
        return [(o.flag, o.description, o.default, _KINDS[o.annotation]) for o in self.option_list]

    @property
    def statistics(self) -> list[tuple[str, str]]:
        """Name and description of each statistic, for the native side."""
        return list(self.statistic_map.items())

    def load(self) -> type[Pass]:
        """Imports the pass."""
        cls = getattr(importlib.import_module(self.module), self.class_name)
        cls.name = self.name
        return cls

    def create(self, texts: Sequence[str] | None = None) -> Pass:
        """An instance with option values in order, as texts."""
        instance = self.load()()
        if texts is not None:
            for option, text in zip(self.option_list, texts, strict=True):
                setattr(instance, option.attribute, option.parse(text))
        return instance


@cache
def discover() -> dict[str, PassInfo]:
    """All passes by name, from the source files in the phase folders beside this one."""
    passes: dict[str, PassInfo] = {}
    for phase in sorted(path for path in Path(__file__).parent.iterdir() if path.is_dir()):
        for path in sorted([*phase.glob("*.py"), *phase.glob("*/__init__.py")]):
            info = _read(path, phase.name)
            if info is None:
                continue
            if info.name in passes:
                raise ValueError(f"{info.module} and {passes[info.name].module} both define {info.name}")
            passes[info.name] = info
    return passes


def register_all(register: Callable[[PassInfo], None]) -> None:
    """Registers every pass with MLIR."""
    for info in discover().values():
        register(info)


_PASS_CLASS = re.compile(r"^class (\w+)\(Pass\):\n(?:(?! {4}(?:def |@))(?:[ \t].*)?\n|#.*\n)*", re.MULTILINE)


def _read(path: Path, phase: str) -> PassInfo | None:
    """What the file says about its pass; None without one. Only the class is parsed, up to its first method: every
    command waits for it.
    """
    found = _PASS_CLASS.search(path.read_text(encoding="utf-8") + "\n")
    if found is None:
        return None
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    body = ast.parse(found.group(0)).body[0]
    assert isinstance(body, ast.ClassDef)
    description = ast.get_docstring(body) or ""
    attributes = _attributes(body)
    statistics = attributes.get("statistics", {})
    return PassInfo(
        name="mlc-" + stem.replace("_", "-"),
        module=f"{__package__}.{phase}.{stem}",
        class_name=found.group(1),
        summary=description.split("\n")[0],
        description=description,
        phase=phase,
        anchor=attributes.get("anchor", "builtin.module"),
        dialects=tuple(attributes.get("dialects", ())),
        option_list=tuple(_options(body)),
        statistic_map=dict(statistics),
    )


def _attributes(body: ast.ClassDef) -> dict[str, Any]:
    """The literal class attributes that are no options."""
    values = {}
    for node in body.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and "ClassVar" in ast.unparse(node.annotation) and node.value:
            assert isinstance(node.target, ast.Name)
            name, value = node.target.id, node.value
        else:
            continue
        if name in ("anchor", "dialects", "statistics"):
            values[name] = ast.literal_eval(value)
    return values


def _options(body: ast.ClassDef) -> list[Option]:
    """The annotated attributes of a kind that a pipeline can give."""
    options = []
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.value is None:
            continue
        annotation = ast.unparse(node.annotation)
        if annotation not in _KINDS:
            continue
        value = ast.literal_eval(node.value)
        text = ",".join(value) if annotation == "list[str]" else str(value)
        is_described = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        options.append(
            Option(
                node.target.id,
                annotation,
                text.lower() if annotation == "bool" else text,
                str(following.value.value) if is_described else "",  # type: ignore[union-attr]
            )
        )
    return options
