"""`mlc-run`: runs a compiled model. Works wherever the library works: needs NumPy, typer and rich, no compiler."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

try:
    import typer
except ModuleNotFoundError:
    sys.exit("mlc-run: needs typer and rich beside NumPy: pip install typer rich")

from mlc.cli.failures import run_program
from mlc.cli.process import FAULT
from mlc.cli.version import Version
from mlc.runtime.errors import ArgumentError, MlcError, ModelError

if TYPE_CHECKING:
    from rich.console import Console

    from mlc.runtime.loader import Context, Entry, Model, Signature

BENCH_SECONDS = 1.0
_UNBROKEN = 10_000  # columns where no terminal has fewer: what reads the output breaks no lines

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class CheckFailedError(MlcError):
    """The outputs differ from the reference: the tables have said how."""


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def run_command(
    model: Annotated[Path, typer.Argument(help="a library that mlc-compile wrote", show_default=False)],
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=WHAT",
            help="@FILE.npy, @FILE.npz[:NAME], random[:LOW:HIGH], zeros, ones, a number, or a shape 1x3x224",
        ),
    ] = None,
    dims: Annotated[
        list[str] | None, typer.Option("--dim", metavar="NAME=N", help="extent of a dynamic dimension [smallest]")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="which entry to run [the first]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of random inputs")] = 0,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npz", help="write the outputs to this file")] = None,
    check: Annotated[Path | None, typer.Option(metavar="REF", help="compare with an .onnx model or .npz file")] = None,
    rtol: Annotated[float, typer.Option(help="relative tolerance of --check")] = 1e-3,
    atol: Annotated[float, typer.Option(help="absolute tolerance of --check")] = 1e-4,
    bench: Annotated[
        int | None,
        typer.Option(metavar="[=N]", min=0, help="time N runs; alone, for about a second", show_default=False),
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="time every kernel")] = False,
    info: Annotated[bool, typer.Option("--info", help="say what the model takes and gives, and stop")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="[MLC_NUM_THREADS, else the cores]")] = None,
    device: Annotated[int | None, typer.Option(min=0, help="number of the GPU [MLC_DEVICE, else 0]")] = None,
    weights: Annotated[Path | None, typer.Option(help="external weights, when not beside MODEL")] = None,
    init_weights: Annotated[
        str | None, typer.Option(metavar="SEED|FILE", help="write the external weights first: random ones, or a file's")
    ] = None,
    trust_weights: Annotated[
        bool, typer.Option("--trust-weights", help="external weights may differ from those compiled with")
    ] = False,
    _version: Version = False,
) -> None:
    """Run MODEL once and summarise its outputs; or check, time, profile or describe it."""
    from mlc.runtime.example_inputs import make_inputs, parse_assignments
    from mlc.runtime.loader import load

    console = _console()
    specs = parse_assignments(inputs or [], "--input")
    extents = _parse_dims(parse_assignments(dims or [], "--dim"))
    if init_weights is not None:
        trust_weights |= _init_weights(model, weights, init_weights)
    loading = partial(load, model, threads=threads, weights=weights, verify_weights=not trust_weights, device=device)
    if info:
        return _print_info(console, model, loading)
    loaded = loading()
    chosen = loaded.entry(entry)
    feeds = make_inputs(loaded, chosen, specs, extents, seed)
    outputs = _run(console, loaded, chosen, feeds, {*specs, *extents}, save, bench)
    if profile:
        with loaded.context(profile=True) as profiled:
            _profile(console, profiled, chosen, feeds, bench or 20)
    if check is not None:
        _check(console, check, feeds, outputs, rtol, atol)


def _chosen_extents(entry: Entry, feeds: Mapping[str, Any], given: Collection[str]) -> str:
    """What to do where extents that nobody gave may be why a model refuses its inputs; empty where there are none."""
    chosen: dict[str, int] = {}
    for info in entry.inputs:
        if info.name not in given:
            for name, extent in zip(info.dims or (), getattr(feeds[info.name], "shape", ()), strict=False):
                if isinstance(name, str) and name not in given:
                    chosen[name] = extent
    named = ", ".join(f"{name}={extent}" for name, extent in chosen.items())
    return f"; the input was made with {named}: choose others with --dim" if chosen else ""


def _run(
    console: Console,
    model: Model,
    entry: Entry,
    feeds: Mapping[str, Any],
    given: Collection[str],
    save: Path | None,
    bench: int | None,
) -> dict[str, Any]:
    """Runs the entry once, prints, saves and times it; returns the outputs. `given` are the inputs and dimensions that
    the user said something about.
    """
    from mlc.runtime.arrays import check_writable

    if save is not None:
        check_writable(save)
    with model.context() as context:
        try:
            outputs = context.run(feeds, entry=entry)
        except ModelError as error:
            raise ModelError(f"{error}{_chosen_extents(entry, feeds, given)}") from error
        _print_outputs(console, outputs)
        if save is not None:
            _save(save, outputs)
        if bench is not None:
            _bench(console, lambda: context.run(feeds, entry=entry), bench, model.num_threads)
    return outputs


def _init_weights(model: Path, weights: Path | None, source: str) -> bool:
    """Writes the weight file of `model` and says where. Returns whether it differs from the one compiled with."""
    from mlc.runtime.image_hash import ImageHash
    from mlc.runtime.loader import read_metadata

    try:
        from mlc.weights.rebuild import random_weights, rebuild, weights_of_file
    except ImportError as error:
        raise ArgumentError(f"--init-weights needs {error.name}: pip install {error.name}") from error
    metadata = read_metadata(model)
    description, known = metadata.get("weight_image"), metadata["weights"]
    if description is None:
        raise ArgumentError(f"--init-weights: '{model}' has no external weights (compile with --weights external)")
    path = weights or model.with_name(known["file"])
    if path.exists():
        raise ArgumentError(f"--init-weights: '{path}' exists already; name another file with --weights")
    given = random_weights(description, int(source)) if source.isdecimal() else weights_of_file(source)
    digest = rebuild(description, known["size"], given, path, ImageHash())
    same = digest.hex() == known["hash"]
    note = "those compiled with" if same else "not those compiled with: run it with --trust-weights"
    print(f"wrote {path} ({known['size'] / 1e6:.1f} MB; {note})", file=sys.stderr)
    return not same


def _parse_dims(texts: Mapping[str, str]) -> dict[str, int]:
    for name, text in texts.items():
        if not text.isdecimal():
            raise ArgumentError(f"--dim {name}={text}: an extent is a number")
    return {name: int(text) for name, text in texts.items()}


# --- What is printed -------------------------------------------------------------------------------------------


def _console() -> Console:
    """Where results go."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNBROKEN
    return console


def _table(*columns: str, right: Sequence[str] = ()) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _print_info(console: Console, path: Path, loading: Callable[[], Model]) -> None:
    """Says what the model is, and whether it runs on this machine: it may be for another."""
    from mlc.runtime.errors import DeviceError, LoadError, WeightsError
    from mlc.runtime.loader import read_signature

    signature = read_signature(path)
    _print_signature(console, signature)
    try:
        console.print(f"here: runs, threads: {loading().num_threads}", markup=False)
    except (DeviceError, LoadError, WeightsError) as error:
        console.print(f"here: does not run: {error}", markup=False)


def _described_cpu(host: Mapping[str, str]) -> str:
    """A CPU, with what it must have beyond the level of the psABI that it is named by."""
    from mlc.targets.cpu import beyond_level

    more = beyond_level(host["cpu"], host["features"])
    return f"{host['cpu']}{' with ' if more else ''}{', '.join(more)} ({host['triple']})"


def _made_for(metadata: Mapping[str, Any]) -> str | None:
    """The chips that a model was compiled for."""
    host, gpu = metadata.get("target"), metadata.get("gpu")
    text = _described_cpu(host) if isinstance(host, dict) else host
    architectures = []
    while isinstance(gpu, dict):
        architectures.append(gpu["arch"])
        gpu = gpu.get("following")
    return f"NVIDIA {', '.join(architectures)}; host {text}" if architectures else text


def _print_signature(console: Console, model: Signature) -> None:
    from rich.markup import escape

    from mlc.runtime.needed_memory import amount, needed_memory

    for entry in model.entries.values():
        table = _table(f"entry {entry.name}", "", "")
        for what, values in (("in", entry.inputs), ("out", entry.outputs)):
            for value in values:
                table.add_row(what, escape(value.name), escape(str(value)))
        console.print(table, "")
    if model.dims:
        table = _table("dimension", "range", "multiple of")
        for dim in model.dims.values():
            bounds = f"{dim.lowest} to {dim.highest}" if dim.highest >= 0 else f"{dim.lowest} or more"
            table.add_row(escape(dim.name), bounds, str(dim.multiple))
        console.print(table, "")
    weights = model.metadata.get("weights", {})
    rows = {
        "compiled by": model.metadata.get("compiler"),
        "for": _made_for(model.metadata),
        "precision": model.metadata.get("precision"),
        "winograd": model.metadata.get("winograd"),
        "bits of rows": model.metadata.get("row_bits"),
        "tuning": model.metadata.get("tuning"),
        "kernels": len(model.metadata["kernels"]) if "kernels" in model.metadata else None,
        "weights": f"{amount(weights['size'])} in {weights.get('file') or 'the library'}"
        if weights.get("size")
        else None,
        "memory": needed_memory(weights.get("size", 0), model.metadata["memory"])
        if "memory" in model.metadata
        else None,
    }
    for label, text in rows.items():
        if text is not None:
            console.print(f"{label}: {text}", markup=False)


def _print_outputs(console: Console, outputs: Mapping[str, Any]) -> None:
    import numpy as np

    table = _table("output", "type", "min", "mean", "max", right=("min", "mean", "max"))
    for name, value in outputs.items():
        if not isinstance(value, np.ndarray):
            maps = " maps" if value and isinstance(value[0], dict) else ""
            text = "empty" if value is None else f"sequence of {len(value)}{maps}"
            table.add_row(name, text, "", "", "")
            continue
        shape = f"{value.dtype}\\[{','.join(map(str, value.shape))}]"
        if value.dtype == object or not value.size or value.dtype.kind == "c":
            table.add_row(name, shape, "", "", "")
            continue
        wide = value.astype(np.float64)
        table.add_row(name, shape, *(f"{number:.6g}" for number in (wide.min(), wide.mean(), wide.max())))
    console.print(table)


def _bench(console: Console, call: Callable[[], object], runs: int, threads: int) -> None:
    """Times `runs` runs (0: about a second's worth, at least five) after two to warm up."""
    import numpy as np

    for _ in range(2):
        call()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < (runs or 5) or (not runs and time.perf_counter() - begin < BENCH_SECONDS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    low, median, high = np.percentile(times, [0, 50, 90])
    plural = "thread" if threads == 1 else "threads"
    console.print(
        f"{len(times)} runs, {threads} {plural}: min {low:.3f} ms, median {median:.3f} ms, 90% below {high:.3f} ms"
    )


def _profile(console: Console, context: Context, entry: Entry, feeds: Mapping[str, Any], runs: int) -> None:
    context.run(feeds, entry=entry)
    context.profile()
    for _ in range(runs):
        context.run(feeds, entry=entry)
    report = context.profile()
    right = ("calls", "items", "ms a run", "min us a call", "share")
    table = _table("kernel", *right, "template", "nodes", right=right)
    inside = 0.0
    for kernel in sorted(report["kernels"], key=lambda k: -k["ns"]):
        inside += kernel["ns"]
        table.add_row(
            kernel["name"],
            f"{kernel['calls'] / runs:g}",
            f"{kernel['items'] / kernel['calls']:g}",
            f"{kernel['ns'] / runs / 1e6:.3f}",
            f"{kernel['min_ns'] / 1e3:.1f}",
            f"{kernel['ns'] / report['ns']:.1%}",
            kernel["template"],
            _node_list(kernel["nodes"]),
        )
    table.add_row("host", "", "", f"{(report['ns'] - inside) / runs / 1e6:.3f}", "", f"{1 - inside / report['ns']:.1%}")
    table.add_row("total", "", "", f"{report['ns'] / runs / 1e6:.3f}", "", "")
    console.print(table)


def _node_list(nodes: Sequence[str]) -> str:
    """The first source node of a kernel, and how many more there are."""
    from rich.markup import escape

    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return escape(nodes[0]) + more if nodes else ""


# --- Checking and saving ---------------------------------------------------------------------------------------


def _check(
    console: Console, path: Path, feeds: Mapping[str, Any], outputs: Mapping[str, Any], rtol: float, atol: float
) -> None:
    from mlc.runtime.compare import compare, reference_outputs

    expected = reference_outputs(path, feeds)
    missing = [name for name in outputs if name not in expected]
    if missing:
        raise ArgumentError(f"'{path}' has no output '{missing[0]}'; it has {', '.join(expected)}")
    table = _table("output", "largest error", "relative", "wrong", "", right=("largest error", "relative", "wrong"))
    failed = False
    for name, value in outputs.items():
        row = compare(name, value, expected[name], rtol, atol)
        failed |= not row.passed
        verdict = row.reason or ("ok" if row.passed else "differs")
        table.add_row(name, f"{row.absolute:.3g}", f"{row.relative:.2g}", f"{row.wrong} of {row.count}", verdict)
    console.print(table)
    if failed:
        raise CheckFailedError(f"the outputs differ from those of '{path}' (rtol {rtol:g}, atol {atol:g})")


def _save(path: Path, outputs: Mapping[str, Any]) -> None:
    """Writes the arrays; the file appears when it is complete. Items of sequences are NAME.0, NAME.1, …; maps rows."""
    from mlc.runtime.arrays import write_arrays
    from mlc.runtime.maps import as_matrix

    arrays: dict[str, Any] = {}
    for name, value in outputs.items():
        value = as_matrix(value)
        if isinstance(value, list):
            arrays.update({f"{name}.{i}": item for i, item in enumerate(value)})
        elif value is not None:
            arrays[name] = value.astype(str) if value.dtype == object else value
    write_arrays(path, arrays)


# --- The command -----------------------------------------------------------------------------------------------


def _describe(error: BaseException) -> tuple[str, int] | None:
    if type(error).__name__ in ("WeightError", "FormatError"):  # of mlc.weights, which is imported when it is needed
        return str(error), FAULT
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code (`mlc.cli.failures.run_program`)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # The value of --bench is optional, which typer's options cannot say.
    words = ["--bench=0" if word == "--bench" else word for word in given]
    command = typer.main.get_command(app)

    def call() -> object:
        return command.main(words, prog_name="mlc-run", standalone_mode=False)

    return run_program("mlc-run", given, call, _describe)


if __name__ == "__main__":
    sys.exit(main())
