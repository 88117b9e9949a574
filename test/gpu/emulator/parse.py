"""Reads PTX: the entries of a module, as far as LLVM and inline assembly write it (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTHS = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4}
WIDTHS |= {"f32": 4, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "tf32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "pred": 0}
_WORD = re.compile(r"[\w$%.]+")
_COMMENTS = re.compile(r"//[^\n]*|^\.(version|target|address_size)[^\n]*", re.MULTILINE)
_FLOATS = {"0f": ">f", "0d": ">d"}


@dataclass
class Instruction:
    """One instruction: `name` with all its modifiers, and its operands as they are written. It is executed where
    register `guard` is true, or false if `negated`."""

    name: str
    operands: list[str]
    guard: str
    negated: bool
    line: int
    scope: tuple[int, ...]

    @property
    def parts(self) -> list[str]:
        return self.name.split(".")


@dataclass
class Variable:
    """A variable of `size` bytes: in shared memory (0 bytes: the dynamic one), or with contents."""

    space: str
    size: int
    alignment: int
    content: bytes


@dataclass
class Module:
    """What a PTX file has: one entry, its parameters (bytes, alignment), registers by name, variables, and
    instructions, whose labels say where they stand."""

    name: str = ""
    parameters: dict[str, tuple[int, int]] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    cluster: int = 1

    def target(self, label: str, scope: tuple[int, ...]) -> int:
        """The place of a label that an instruction of `scope` names."""
        for number in reversed(scope):
            if f"{label}@{number}" in self.labels:
                return self.labels[f"{label}@{number}"]
        raise ValueError(f"no label {label}")


def number(text: str) -> int | None:
    """The bits of a literal; None for a name."""
    if text[:2].lower() in _FLOATS and len(text) in (10, 18):
        return int(text[2:], 16)
    try:
        return int(text.rstrip("U"), 0)
    except ValueError:
        return None


def float_bits(value: float, width: int) -> int:
    """The bits of a float."""
    packed = struct.pack({4: "<f", 8: "<d"}[width], value)
    return int.from_bytes(packed, "little")


def split(text: str) -> list[str]:
    """The operands of an instruction."""
    found, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()] if text.strip() else []


def _statements(text: str) -> Iterator[tuple[str, int]]:
    """Statements without their semicolons, labels with their colons, and the braces of blocks, with their lines."""
    start, line, depth = "", 1, 0
    for c in text:
        line += c == "\n"
        if not start.strip() and c in "{}":
            yield c, line
            start = ""
        elif c == ";" and depth == 0:
            yield start.strip(), line
            start = ""
        elif c == "{" and depth == 0 and start.strip().startswith((".visible", ".entry")):
            yield start.strip(), line
            yield c, line
            start = ""
        elif c == ":" and re.fullmatch(r"\s*[\w$]+", start):
            yield start.strip() + ":", line
            start = ""
        else:
            depth += (c in "{[(") - (c in "}])")
            start += c


class _Reader:
    def __init__(self) -> None:
        self.module = Module()
        self.scopes: list[int] = [0]
        self.local: list[dict[str, str]] = [{}]
        self.count = 0

    def read(self, text: str) -> Module:
        for statement, line in _statements(_COMMENTS.sub("", text)):
            if statement == "{":
                self.count += 1
                self.scopes.append(self.count)
                self.local.append({})
            elif statement == "}":
                self.scopes.pop()
                self.local.pop()
            elif statement.endswith(":"):
                self.module.labels[f"{statement[:-1]}@{self.scopes[-1]}"] = len(self.module.code)
            else:
                self._statement(" ".join(statement.split()), line)
        return self.module

    def _statement(self, text: str, line: int) -> None:
        if text.startswith(".reg"):
            self._registers(text)
        elif ".entry" in text:
            self._entry(text)
        elif re.match(r"\.(visible |extern |weak )?\s*\.?(shared|global|const|local)\b", text.lstrip()):
            self._variable(text)
        elif text and not text.startswith((".loc", ".pragma", ".file", ".section")):
            self._instruction(text, line)

    def _registers(self, text: str) -> None:
        _, kind, names = text.split(None, 2)
        for name in names.split(","):
            counted = re.fullmatch(r"\s*([\w$%]+)<(\d+)>\s*", name)
            if counted is not None:
                for i in range(int(counted[2])):
                    self.module.registers[f"{counted[1]}{i}"] = kind[1:]
                continue
            own = f"{name.strip()}@{self.scopes[-1]}"
            self.local[-1][name.strip()] = own
            self.module.registers[own] = kind[1:]

    def _entry(self, text: str) -> None:
        found = re.search(r"\.entry\s+([\w$]+)\s*\((.*?)\)\s*(.*)", text)
        assert found is not None, text
        self.module.name = found[1]
        for parameter in split(found[2]):
            sized = re.search(r"\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align \d+\s+)?)?([\w$]+)(?:\[(\d+)\])?$", parameter)
            assert sized is not None, parameter
            aligned = re.match(r"\.param\s+\.align\s+(\d+)", parameter)
            size = WIDTHS[sized[1]] * int(sized[3] or 1)
            self.module.parameters[sized[2]] = (size, int(aligned[1]) if aligned else size)
        cluster = re.search(r"\.reqnctapercluster\s+(\d+)", found[3])
        self.module.cluster = int(cluster[1]) if cluster else 1

    def _variable(self, text: str) -> None:
        found = re.search(
            r"\.(shared|global|const|local)\s+(?:\.attribute\([^)]*\)\s+)?(?:\.align (\d+)\s+)?\.(\w+)\s+([\w$]+)(\[\d*\])?(?:\s*=\s*(.*))?$", text
        )  # fmt: skip
        assert found is not None, text
        space, align, kind, name, count, content = found.groups()
        width = WIDTHS[kind]
        size = width * (1 if count is None else int(count[1:-1] or 0))
        values = [] if content is None else [number(v) for v in split(content.strip().strip("{}"))]
        image = b"".join((v or 0).to_bytes(width, "little") for v in values)
        self.module.variables[name] = Variable(space, size, int(align or width), image)

    def _instruction(self, text: str, line: int) -> None:
        names = {k: v for scope in self.local for k, v in scope.items()}
        text = _WORD.sub(lambda word: names.get(word[0], word[0]), text)
        guard = re.match(r"@(!?)([\w$%@]+)\s+", text)
        rest = text[guard.end() :] if guard else text
        name, _, operands = rest.partition(" ")
        said = (guard[2], bool(guard[1])) if guard else ("", False)
        self.module.code.append(Instruction(name, split(operands), *said, line, tuple(self.scopes)))


def parse(text: str) -> Module:
    """The module that a PTX file has."""
    return _Reader().read(text)
