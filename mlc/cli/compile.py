"""`mlc-compile`: a model into one shared library."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from mlc.cli import process
from mlc.cli.process import BUG, DONE, FAULT, USAGE
from mlc.cli.version import Version
from mlc.interrupt import Interrupts

if TYPE_CHECKING:
    from mlc.cli.progress import Reporter

PANEL = "Stopping and going on"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def compile_command(
    model: Annotated[
        Path, typer.Argument(help="an .onnx, .pt2 or TorchScript (.pt) file, or an earlier .mlir", show_default=False)
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="the file to write [MODEL.so]")] = None,
    target: Annotated[str, typer.Option(help="what to compile for: cpu, or cuda (an NVIDIA GPU)")] = "cpu",
    cpu: Annotated[str | None, typer.Option(help="native, x86-64-v3, x86-64-v4 or a CPU's name [native]")] = None,
    gpu: Annotated[str | None, typer.Option(help="for target cuda: h200, or chips with commas: sm_90a,sm_80")] = None,
    emit: Annotated[str, typer.Option(help="stop after this phase, or: object, library; cuda: ptx, cubin")] = "library",
    from_phase: Annotated[str | None, typer.Option("--from", help="go on after this phase; MODEL is .mlir")] = None,
    dump_ir: Annotated[Path | None, typer.Option(help="write the IR after every phase to this folder")] = None,
    inputs: Annotated[list[str] | None, typer.Option("--input", help="NAME=1x3xHxW[:DTYPE], shape of an input")] = None,
    dims: Annotated[list[str] | None, typer.Option("--dim", help="NAME=8, NAME=1..512 or NAME=1..512/8")] = None,
    outputs: Annotated[str | None, typer.Option(help="names of the values to return, with commas")] = None,
    precision: Annotated[str, typer.Option(help="contractions: fp32, bf16 (memory too), for GPUs also tf32")] = "fp32",
    winograd: Annotated[int, typer.Option(metavar="2|4", help="3x3 convolutions by F(2x2, 3x3) or F(4x4, 3x3)")] = 0,
    row_bits: Annotated[int, typer.Option(help="8: round what weights of few bits multiply, in blocks")] = 0,
    weights: Annotated[
        str,
        typer.Option(help="embed, external (a .safetensors file beside the library), or auto: external above 256 MB"),
    ] = "auto",
    jobs: Annotated[int | None, typer.Option(help="threads of code generation [all cores]")] = None,
    opt_level: Annotated[int | None, typer.Option("-O", "--opt-level", help="LLVM's, 0 to 3 [3]")] = None,
    verify_each: Annotated[bool, typer.Option("--verify-each", help="check the IR after every phase")] = False,
    verify: Annotated[
        int,
        typer.Option(
            metavar="[=N]", help="compare with the interpreter on N random inputs; alone: 3", show_default=False
        ),
    ] = 0,
    report_file: Annotated[
        Path | None, typer.Option("--report", metavar="OUT.html", help="write what was decided, by kernel; or .json")
    ] = None,
    tune: Annotated[str | None, typer.Option(metavar="[=SECONDS]", help="measure schedules here; alone: 60")] = None,
    tuning_cache: Annotated[Path | None, typer.Option(help="the file of measured schedules to use")] = None,
    tune_bundle: Annotated[Path | None, typer.Option(help="write GPU kernels for another machine to measure")] = None,
    calibrate: Annotated[Path | None, typer.Option(hidden=True)] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="do not use the cache of compiled kernels")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="tracebacks, and a line per phase")] = False,
    _version: Version = False,
) -> None:
    """Compile MODEL into one shared library that needs nothing but libc."""
    from mlc.cli.progress import reporter
    from mlc.options import SUFFIXES

    path = output or Path(f"{model.stem}{SUFFIXES.get(emit, '.mlir')}")

    def options() -> dict[str, Any]:
        _refuse(calibrate)
        return {
            "target": target, "cpu": cpu, "gpu": gpu, "emit": emit, "from_phase": from_phase, "dump_ir": dump_ir,
            "precision": precision, "winograd": winograd, "row_bits": row_bits, "weights": weights, "jobs": jobs,
            "opt_level": opt_level, "verify_each": verify_each, "verify": verify, "cache": not no_cache,
            "report": report_file, "tune": None if tune is None else parse_seconds(tune), "tuning_cache": tuning_cache,
            "tune_bundle": tune_bundle, "reproducer": path.parent / f"{path.stem}.reproducer.mlir",
            **_signature_options(inputs or [], dims or [], outputs),
        }  # fmt: skip

    _compile(model, path, options, reporter(verbose), verbose)


def _compile(model: Path, output: Path, options: Callable[[], dict[str, Any]], report: Reporter, verbose: bool) -> None:
    """Compiles, or ends the command with one message and the right code."""
    interrupts = Interrupts()
    try:
        with interrupts, report:
            written = _run(model, output, options(), report, interrupts)
        for file, remark in written:
            report.finish(file, remark)
    except KeyboardInterrupt:
        _fail(interrupts.message, interrupts.code)
    except Exception as error:
        if interrupts.pending:
            _fail(interrupts.message, interrupts.code)
        if verbose:
            traceback.print_exc()
        code = exit_code(error)
        _fail(describe(error, code), code)


def _run(
    model: Path, output: Path, options: dict[str, Any], report: Reporter, interrupts: Interrupts
) -> list[tuple[Path, str]]:
    """The files that were written, and what is to be said of each."""
    from mlc.compilation import Compilation
    from mlc.options import make_options

    parsed = make_options(**options)

    def update(stage: str, done: int, total: int, seconds: float) -> None:
        # When the last stage ends, its files have their names: too late to say that nothing was written.
        if stage != parsed.emit or done < total:
            interrupts.check()
        report.update(stage, done, total, seconds)

    compilation = Compilation(parsed, update, report.note)
    compilation.run(model, output)
    remarks = {output: compilation.needs} if parsed.emit == "library" else {}
    return [(file, remarks.get(file, "")) for file in compilation.written]


def _fail(message: str, code: int) -> NoReturn:
    from mlc.cli.progress import say

    say(f"mlc-compile: {message}")
    raise typer.Exit(code)


def exit_code(error: BaseException) -> int:
    """1: the input or the machine is at fault, 2: usage, 3: a bug of ours."""
    from mlc.codegen.link import LinkError
    from mlc.codegen.ptxas import PtxasError
    from mlc.frontends.report import ModelError
    from mlc.options import InstallationError, InternalError, UsageError
    from mlc.weights import WeightError
    from mlc.weights.safetensors import FormatError

    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, InternalError):
        return BUG
    faults = (ModelError, LinkError, PtxasError, WeightError, FormatError, InstallationError, OSError, MemoryError)
    if isinstance(error, faults):
        return FAULT
    return BUG


def describe(error: BaseException, code: int) -> str:
    """The one message that the user gets."""
    if code == BUG and type(error).__name__ != "InternalError":
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return f"a bug in mlc: {type(error).__name__} in {place}: {error} (-v shows the traceback)"
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.errno and error.strerror:
        return f"'{error.filename}': {error.strerror}" if error.filename else error.strerror
    return str(error)


def _refuse(calibrate: Path | None) -> None:
    from mlc.options import UsageError

    if calibrate is not None:
        raise UsageError("--calibrate: this version does not quantise models; give one that has been (QDQ form)")


# --- Values of options ----------------------------------------------------------------------------------------


def _signature_options(inputs: list[str], dims: list[str], outputs: str | None) -> dict[str, Any]:
    parsed = [parse_input(text) for text in inputs]
    options: dict[str, Any] = {
        "inputs": {name: shape for name, shape, _ in parsed},
        "dtypes": {name: dtype for name, _, dtype in parsed if dtype},
        "dims": dict(parse_dim(text) for text in dims),
    }
    if outputs is not None:
        options["outputs"] = tuple(name.strip() for name in outputs.split(",") if name.strip())
    return options


def parse_input(text: str) -> tuple[str, tuple[int | str, ...], str | None]:
    """`x=1x3xHx224:float32` or `mask=1,1,new,past+new` -> name, shape, dtype. A shape without dimensions is a scalar.
    Raises UsageError.
    """
    from mlc.options import UsageError
    from mlc.runtime.dim_sums import parse_sum

    found = re.fullmatch(r"(.+?)=([^:=]*)(?::(\w+))?", text)
    if not found:
        raise UsageError(f"--input '{text}': expected NAME=SHAPE or NAME=SHAPE:DTYPE, as in image=1x3xHxW:float32")
    name, shape, dtype = found.groups()
    # Names of dimensions may contain an x; commas separate those.
    parts = [p for p in (shape.split(",") if "," in shape else shape.split("x")) if p.strip()]
    extents: list[int | str] = []
    for part in (p.strip() for p in parts):
        found_sum = parse_sum(part)
        if found_sum is None and not re.fullmatch(r"\d+|[A-Za-z_]\w*", part):
            raise UsageError(f"--input '{text}': '{part}' is neither an extent nor the name of a dimension")
        extents.append(int(part) if part.isdigit() else part if found_sum is None else str(found_sum))
    return name, tuple(extents), dtype


def parse_dim(text: str) -> tuple[str, tuple[int, int | None, int]]:
    """`batch=8`, `seq=1..512`, `seq=1..`, `seq=1..512/8` -> name, (lowest, highest, multiple). Raises
    UsageError.
    """
    from mlc.options import UsageError

    found = re.fullmatch(r"(.+?)=(\d+)(?:(\.\.)(\d*))?(?:/(\d+))?", text)
    if not found:
        raise UsageError(f"--dim '{text}': expected NAME=EXTENT, NAME=LOWEST..HIGHEST or NAME=LOWEST..HIGHEST/MULTIPLE")
    name, low, dots, high, multiple = found.groups()
    highest = int(low) if not dots else int(high) if high else None
    return name, (int(low), highest, int(multiple or 1))


def parse_seconds(text: str) -> float:
    """A budget: `60`, `0.5` or `60s`. Raises UsageError."""
    from mlc.options import UsageError

    if not re.fullmatch(r"\d+(\.\d*)?s?", text):
        raise UsageError(f"--tune={text}: expected a number of seconds, as in --tune=60")
    return float(text.removesuffix("s"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line (default: the process's); returns 0 (done), 1 (input or machine), 2 (usage), 3 (a bug of
    ours), 130 (interrupted) or 143 (terminated). With the process's command line it ends the process instead.
    """
    if arguments is None:
        process.begin()
        process.end(main(sys.argv[1:]))
    # The values of --verify and --tune are optional, which typer's options cannot say.
    alone = {"--verify": "--verify=3", "--tune": "--tune=60"}
    words = [alone.get(word, word) for word in arguments]
    try:
        app(words, prog_name="mlc-compile")
    except SystemExit as stop:
        return int(stop.code or DONE)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
