"""`mlc-bench`: a model compiled by mlc against the engines that are installed, in one run."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mlc.cli.failures import run_program
from mlc.cli.process import FAULT
from mlc.cli.version import Version
from mlc.runtime.errors import ArgumentError, MlcError

if TYPE_CHECKING:
    from mlc.bench.contest import Plan
    from mlc.bench.output import Round
    from mlc.bench.peak import Peak
    from mlc.bench.subject import Subject

TOLERANCES = {"fp32": 1e-3, "bf16": 5e-2}
OF_HALVES = 1e-2  # of models that have some, whose engines round what they compute or do not
REFERENCE = "reference.npz"
SUFFIXES = (".onnx", ".pt2", ".pt", ".pth")

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class DiffersError(MlcError):
    """mlc's results are not those of the reference: the table has said how."""


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def bench_command(
    model: Annotated[Path, typer.Argument(help="an .onnx, .pt2 or TorchScript (.pt) file", show_default=False)],
    peers: Annotated[
        str | None, typer.Option(help="of onnxruntime, openvino, iree, torch, inductor, with commas, or none [all]")
    ] = None,
    threads: Annotated[str, typer.Option(metavar="LIST", help="numbers of threads, with commas")] = "1",
    rounds: Annotated[int, typer.Option(min=1, help="bursts of each engine, in turn")] = 7,
    burst: Annotated[float, typer.Option(min=0.0, metavar="SECONDS", help="length of a burst")] = 0.15,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="NAME=SHAPE", help="1x3x224x224; 1x128:0:1000 (random in a range); @FILE.npy"
        ),
    ] = None,
    dims: Annotated[
        list[str] | None, typer.Option("--dim", metavar="NAME=N", help="extent of a dynamic dimension [smallest]")
    ] = None,
    static: Annotated[
        bool, typer.Option("--static", help="fix the dynamic dimensions in the model, for all engines")
    ] = False,
    share: Annotated[bool, typer.Option("--share", help="give caches among the outputs the inputs' memory")] = False,
    precision: Annotated[str, typer.Option(help="of contractions: fp32, or bf16 in the engines that have it")] = "fp32",
    torch: Annotated[
        Path | None,
        typer.Option("--torch", metavar="FILE", help="the same model as TorchScript or .pt2, for PyTorch"),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="largest error, relative to the largest output [1e-3; f16: 1e-2; bf16: 5e-2]")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="OUT.json", help="write all numbers")] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="OUT.html", help="write a chart (.png where matplotlib is installed)")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="for an engine to load the model")] = 900.0,
    seed: Annotated[int, typer.Option(min=0, help="of random inputs")] = 0,
    _version: Version = False,
) -> None:
    """Time MODEL, compiled by mlc, against the engines that are installed.

    Every engine runs in a process of its own, is compared with a reference first, and is timed in short bursts that
    take turns; what counts is the median over the rounds of the ratio to the best peer of the round.
    """
    from mlc.bench.contest import Plan
    from mlc.bench.output import plain
    from mlc.runtime.example_inputs import parse_assignments

    _check_model(model, torch, precision, static)
    _check_outputs([model, torch], json_file, chart)
    counts, names = parse_threads(threads), parse_peers(peers)
    specs = parse_assignments(inputs or [], "--input")
    extents = _parse_dims(parse_assignments(dims or [], "--dim"))
    with tempfile.TemporaryDirectory(prefix="mlc-bench-") as name:
        folder = Path(name)
        with _Progress() as say:
            say("compiling")
            subject = _subject(model, folder, specs, extents, static, precision, torch, seed, share)
            plan = Plan(rounds, burst, allowed_error(tolerance, model, precision), timeout)
            reference = _save_reference(subject, plan, say)
            missing, measured = _measure(subject, plan, names, counts, say)
        _tell(plain(subject, measured, missing, reference, static), json_file, chart)


def _tell(data: dict[str, Any], json_file: Path | None, chart: Path | None) -> None:
    """Prints what was measured, writes the files, and fails where a result was wrong."""
    _show(data)
    _write(data, json_file, chart)
    _verdict(data)


# --- Options ----------------------------------------------------------------------------------------------------


def allowed_error(given: float | None, model: Path, precision: str) -> float:
    """The error that outputs may have, relative to their largest magnitude."""
    from mlc.bench.subject import has_halves

    if given is not None:
        return given
    return max(TOLERANCES[precision], OF_HALVES if has_halves(model) else 0)


def parse_threads(text: str) -> list[int]:
    """`1,2` -> [1, 2]. Raises ArgumentError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ArgumentError(f"--threads {text}: expected numbers of threads with commas, as in 1,2")
    return list(dict.fromkeys(int(part) for part in parts))


def parse_peers(text: str | None) -> tuple[str, ...] | None:
    """Names of peers; None for all that are installed. Raises ArgumentError."""
    from mlc.bench.engines import PEERS

    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip() not in ("", "none"))
    for name in names:
        if name not in PEERS:
            raise ArgumentError(f"--peers {text}: there is no peer '{name}'; there are {', '.join(PEERS)}")
    return names


def _parse_dims(texts: Mapping[str, str]) -> dict[str, int]:
    for name, text in texts.items():
        if not text.isdecimal():
            raise ArgumentError(f"--dim {name}={text}: an extent is a number")
    return {name: int(text) for name, text in texts.items()}


def _check_model(model: Path, torch: Path | None, precision: str, static: bool) -> None:
    if precision not in TOLERANCES:
        raise ArgumentError(f"--precision {precision}: it is one of {', '.join(TOLERANCES)}")
    if model.suffix not in SUFFIXES:
        raise ArgumentError(f"'{model}': mlc-bench takes models that others can run too: {', '.join(SUFFIXES)}")
    for path in (model, torch):
        if path is not None and not path.is_file():
            raise MlcError(f"there is no file '{path}'")
    if torch is not None and model.suffix != ".onnx":
        raise ArgumentError("--torch goes with an .onnx model")
    if static and model.suffix != ".onnx":
        raise ArgumentError("--static is about .onnx models: the shapes of others are those of the file and of --input")


def _check_outputs(given: Sequence[Path | None], json_file: Path | None, chart: Path | None) -> None:
    """Finds before the first minute has passed what would fail in the last one."""
    import importlib.util

    from mlc.runtime.arrays import check_writable

    if chart is not None and chart.suffix == ".png" and importlib.util.find_spec("matplotlib") is None:
        raise ArgumentError(f"--chart {chart}: pictures need matplotlib (pip install matplotlib); .html needs nothing")
    if chart is not None and chart.suffix not in (".html", ".png"):
        raise ArgumentError(f"--chart {chart}: expected an .html or a .png file")
    for path in (json_file, chart):
        if path is None:
            continue
        if any(path.resolve() == source.resolve() for source in given if source is not None):
            raise ArgumentError(f"'{path}' is the model itself: name another file")
        check_writable(path)


# --- Measuring --------------------------------------------------------------------------------------------------


def _subject(
    model: Path,
    folder: Path,
    specs: Mapping[str, str],
    dims: dict[str, int],
    static: bool,
    precision: str,
    torch: Path | None,
    seed: int,
    share: bool,
) -> Subject:
    from mlc.bench.subject import fixed_model, make_subject, parse_spec

    shapes = {name: shape for name, spec in specs.items() if (shape := parse_spec(spec)[0]) is not None}
    if static:
        (folder / "static").mkdir()
        model, shapes = fixed_model(model, folder / "static", shapes, dims)
        dims = {}
    elif model.suffix in (".onnx", ".pt2"):
        shapes = {}  # the library keeps the model's dynamic dimensions, as the engines that read the file do
    return make_subject(
        model.absolute(), folder, specs=specs, dims=dims, shapes=shapes, precision=precision,
        torch=torch.absolute() if torch else None, seed=seed, share=share,
    )  # fmt: skip


def _measure(
    subject: Subject, plan: Plan, names: tuple[str, ...] | None, counts: Sequence[int], say: Callable[[str], None]
) -> tuple[list[str], list[Round]]:
    """The peers that are not installed, and the results of each number of threads."""
    from mlc.bench import peak
    from mlc.bench.contest import contest
    from mlc.bench.engines import ENGINES
    from mlc.bench.output import Round
    from mlc.bench.subject import usable_peers

    usable = usable_peers(subject)
    for name in names or ():
        if name not in usable:
            raise ArgumentError(f"--peers: {name} cannot read this model ({_needs(name)})")
    wanted = usable if names is None else names
    missing = [name for name in wanted if not ENGINES[name].installed]
    engines = ["mlc", *(name for name in wanted if name not in missing)]
    program = peak.build(subject.folder)
    measured = []
    for count in counts:
        rates = [peak.Peak(program, count, subject.precision)]
        if subject.compiled.byte_flops:
            rates.append(peak.Peak(program, count, "int8"))
        jobs = [subject.job(name, count) for name in engines]
        found = contest(jobs, subject.folder / REFERENCE, plan, partial(_sample, rates), _Prefixed(say, count))
        measured.append(Round(count, found, *(rate.best for rate in rates)))
    return missing, measured


def _sample(rates: Sequence[Peak]) -> None:
    for rate in rates:
        rate.sample()


def _needs(name: str) -> str:
    if name == "inductor":
        return "give its program of torch.export with --torch FILE.pt2"
    return "give its TorchScript with --torch FILE.pt" if name == "torch" else "it reads .onnx files"


def _save_reference(subject: Subject, plan: Plan, say: Callable[[str], None]) -> str:
    """Writes the reference outputs: those of the first engine that can run the model, which is returned."""
    from mlc.bench.contest import WorkerError, save_reference

    reasons = []
    for name in subject.references():
        say(f"reference results of {name}")
        try:
            save_reference(subject.job(name, 1), subject.folder / REFERENCE, plan.timeout)
            return name
        except WorkerError as error:
            reasons.append(f"{name}: {error}")
    raise MlcError("nothing can run the model for comparison: " + "; ".join(reasons or ["no reference is installed"]))


# --- What is said -----------------------------------------------------------------------------------------------


class _Prefixed:
    """Says what goes on at a number of threads."""

    def __init__(self, say: Callable[[str], None], threads: int) -> None:
        self._say, self._prefix = say, f"{threads} thread{'s' if threads > 1 else ''}: "

    def __call__(self, text: str) -> None:
        self._say(self._prefix + text)


class _Progress:
    """A line on the terminal that says what goes on; nothing where nobody watches."""

    def __enter__(self) -> Callable[[str], None]:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        if not console.is_terminal:
            self._status = None
            return lambda text: None
        self._status = console.status("")
        self._status.start()
        return self._status.update

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()


def _show(data: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from mlc.bench.output import COLUMNS, closing, headline, rows

    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 120
    for line in headline(data):
        console.print(line, markup=False)
    for missing in data["missing"]:
        console.print(f"{missing['engine']}: not installed ({missing['install']})", markup=False)
    for run in data["runs"]:
        console.print(f"\n{run['threads']} thread{'s' if run['threads'] > 1 else ''}")
        table = Table(box=None, pad_edge=False, header_style="bold")
        failed = []
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == "engine" else "right", no_wrap=True)
        for row in rows(run):
            if row[-1].startswith("failed: "):
                failed.append(f"{row[0]}: {row[-1]}")
            else:
                table.add_row(*(escape(cell) for cell in row))
        console.print(table)
        for line in [*failed, closing(run)]:
            console.print(line, markup=False)


def _write(data: Mapping[str, Any], json_file: Path | None, chart: Path | None) -> None:
    from mlc.bench.chart import benchmark_page, write_page, write_png

    if json_file is not None:
        write_page(json_file, json.dumps(data, indent=1) + "\n")
    if chart is not None and chart.suffix == ".png":
        write_png(chart, data)
    elif chart is not None:
        write_page(chart, benchmark_page(data))


def _verdict(data: Mapping[str, Any]) -> None:
    """Raises DiffersError when mlc is wrong, or could not run."""
    for run in data["runs"]:
        mine = next(e for e in run["engines"] if e["engine"] == "mlc")
        if mine["status"] == "failed":
            raise MlcError(f"the compiled model fails: {mine['message']}")
        if mine["status"] == "differs":
            error = mine["relative_error"]
            how = f"relative error {error:.2g}" if error is not None else mine["message"]
            raise DiffersError(f"the compiled model's outputs differ from the reference ({how})")


# --- The command ------------------------------------------------------------------------------------------------


def _describe(error: BaseException) -> tuple[str, int] | None:
    if type(error).__name__ == "CompileError":  # of mlc.bench.subject, which is imported when it is needed
        return f"mlc-compile: {error}", error.code  # type: ignore[attr-defined]
    if type(error).__name__ == "DecodeError":  # of protobuf
        return "the model is damaged: it is no ONNX file", FAULT
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code (`mlc.cli.failures.run_program`), 1 also for wrong results."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)

    def call() -> object:
        return command.main(given, prog_name="mlc-bench", standalone_mode=False)

    return run_program("mlc-bench", given, call, _describe)


if __name__ == "__main__":
    sys.exit(main())
