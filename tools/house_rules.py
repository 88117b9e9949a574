#!/usr/bin/env python3
"""Checks the rules of the house that no linter knows.

* No source file above 600 lines, no Python function above 60.
* No absolute path of somebody's machine in a tracked file, no outputs of programs (binary files), and no name that a
  program would take for an option.
* Data walks one way (frontends, passes, kernels, codegen, runtime): a later folder never imports an earlier
  one, and what a deployed machine loads (`mlc/runtime`, `mlc/interp`, `mlc/weights`) never imports MLIR.
* Every pass file has a lit test of the same stem.

Prints one line a finding, `file:line: message`, and exits 1 when there are any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
SOURCE_SUFFIXES = {".py", ".c", ".cpp", ".h", ".td"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".toml", ".txt", ".mlir", ".cfg", ".ini"}
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:home|root|Users|w[o]rk)/\w")

# Who must not import what. Whatever drives the whole compiler is off limits to all of its parts.
DRIVERS = ("mlc.cli", "mlc.driver", "mlc.options", "mlc.pipelines")
COMPILER = (
    *("mlir", "mlc.frontends", "mlc.dialects", "mlc.passes", "mlc.kernels", "mlc.codegen", "mlc.targets"),
    *("mlc.tuning", "mlc.compiler_setup", *DRIVERS),
)
FORBIDDEN = {
    "mlc/frontends": DRIVERS,
    "mlc/passes": ("mlc.frontends", *DRIVERS),
    "mlc/kernels": ("mlc.frontends", "mlc.passes", *DRIVERS),
    "mlc/codegen": ("mlc.frontends", "mlc.passes", "mlc.kernels", *DRIVERS),
    "mlc/interp": COMPILER,
    "mlc/weights": COMPILER,
    "mlc/runtime": ("mlc.interp", *COMPILER),
}
# The bridge between IR and the interpreter: in the interpreter's folder, but nothing in it imports these two.
BRIDGES = ("mlc/interp/from_ir.py", "mlc/interp/module.py")
# What a deployed machine imports, and what that must not pull in.
DEPLOYED = ("mlc", "mlc.runtime.loader", "mlc.weights", "mlc.interp")
HEAVY = ("mlir", "onnx", "onnxruntime", "torch", "mlc._native")


def project_files() -> list[Path]:
    """The files of the project: tracked, or new and not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(name) for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file()]


def check_length(path: Path, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{path}:1: {lines} lines, at most {MAX_FILE_LINES}; split it by responsibility"


def check_machine_paths(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := MACHINE_PATHS.search(line):
            yield f"{path}:{number}: a path of one machine ({match.group()}…)"


def check_stray(path: Path) -> Iterator[str]:
    if b"\0" in (ROOT / path).read_bytes():
        yield f"{path}:1: a binary file; what programs write is made again, and stays untracked"
    if any(part.startswith("-") for part in path.parts):
        yield f"{path}:1: a name that begins like an option"


def check_functions(path: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION_LINES}"


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def check_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    for folder, forbidden in FORBIDDEN.items():
        if not path.as_posix().startswith(folder + "/") or path.as_posix() in BRIDGES:
            continue
        reported: set[int] = set()
        for line, module in imported_modules(tree):
            hit = next((bad for bad in forbidden if module == bad or module.startswith(bad + ".")), None)
            if hit and line not in reported:
                reported.add(line)
                yield f"{path}:{line}: {folder} must not import {module} (data walks one way)"


def check_deployed() -> Iterator[str]:
    """Imports what a deployed machine imports, in a process of its own, and looks at what came along."""
    code = f"import sys, {', '.join(DEPLOYED)}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        yield f"mlc/__init__.py:1: `import {', '.join(DEPLOYED)}` fails: {result.stderr.strip()}"
    for name in sorted(set(result.stdout.split()) & set(HEAVY)):
        yield f"mlc/__init__.py:1: importing {', '.join(DEPLOYED)} also imports {name}"


def check_pass_tests(files: list[Path]) -> Iterator[str]:
    tests = {path.stem for path in files if path.as_posix().startswith("test/lit/")}
    for path in files:
        parts = path.parts
        if (
            parts[:2] != ("mlc", "passes")
            or path.suffix not in {".py", ".cpp"}
            or path.name.startswith("_")
        ):
            continue
        if registers_pass(path) and path.stem not in tests:
            yield f"{path}:1: no lit test of this pass (test/lit/passes/…/{path.stem}.mlir)"


def registers_pass(path: Path) -> bool:
    """Whether the file defines the pass that its stem names."""
    name = "mlc-" + path.stem.replace("_", "-")
    return f'"{name}"' in (ROOT / path).read_text(encoding="utf-8")


def findings() -> Iterator[str]:
    files = project_files()
    for path in files:
        yield from check_stray(path)
        if path.suffix not in TEXT_SUFFIXES and path.name != "Makefile":
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        yield from check_machine_paths(path, text)
        if path.suffix in SOURCE_SUFFIXES:
            yield from check_length(path, text)
        if path.suffix == ".py":
            tree = ast.parse(text, filename=str(path))
            yield from check_functions(path, tree)
            yield from check_imports(path, tree)
    yield from check_pass_tests(files)
    yield from check_deployed()


def main() -> int:
    found = list(findings())
    print("\n".join(found) if found else "house rules: nothing to report")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
