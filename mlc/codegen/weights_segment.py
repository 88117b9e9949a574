"""Embeds a weight image into a shared library without passing it through the linker.

The library is linked against an object whose only content is an empty (NOBITS) section of the image's size.
Afterwards the image is appended to the file and the program header that covers the section is pointed at
it, so that the loader maps the data lazily from the file. Gigabytes cost one sequential write, and ordinary
32-bit relocations never have to reach across them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

SECTION = b".lbss.mlc_weights"
SYMBOL = b"mlc_weights"
PAGE = 4096

# ELF constants (System V gABI, and the x86-64 psABI for SHF_X86_64_LARGE).
_SHT_PROGBITS, _SHT_SYMTAB, _SHT_STRTAB, _SHT_NOBITS = 1, 2, 3, 8
_SHF_WRITE, _SHF_ALLOC, _SHF_LARGE = 1, 2, 0x10000000
_PT_LOAD, _PF_R, _PF_W = 1, 4, 2
_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_SYMBOL_ENTRY = struct.Struct("<IBBHQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
_MACHINES = {"x86_64": 62, "aarch64": 183}


class WeightImage(Protocol):
    """What gets embedded: its size, and its bytes in pieces (so that memory stays bounded)."""

    @property
    def size(self) -> int:
        """The size of the image in bytes."""
        ...

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The content, from the start, in pieces of any size."""
        ...


@dataclass(frozen=True)
class BytesImage:
    """A small image held in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes | memoryview]:
        yield self.data


@dataclass(frozen=True)
class FileImage:
    """An image, or a part of one, in a file."""

    path: Path
    size: int
    offset: int = 0

    def chunks(self) -> Iterator[bytes | memoryview]:
        left = self.size
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            while left and (piece := file.read(min(left, 1 << 22))):
                left -= len(piece)
                yield piece


class WeightsError(Exception):
    """The linked library cannot take the image: its layout is not the expected one, or the image has
    another size."""


def _string_table(names: list[bytes]) -> tuple[bytes, list[int]]:
    table, offsets = b"\0", []
    for name in names:
        offsets.append(len(table))
        table += name + b"\0"
    return table, offsets


def placeholder_object(nbytes: int, machine: str = "x86_64") -> bytes:
    """A relocatable object that defines the hidden symbol `mlc_weights`: `nbytes` of page-aligned NOBITS
    data."""
    names = [SECTION, b".symtab", b".strtab", b".shstrtab", b".note.GNU-stack"]
    section_names, name_at = _string_table(names)
    strings, (symbol_at,) = _string_table([SYMBOL])
    hidden, global_object = 2, 1 << 4 | 1
    symbols = bytes(_SYMBOL_ENTRY.size) + _SYMBOL_ENTRY.pack(symbol_at, global_object, hidden, 1, 0, nbytes)
    large = _SHF_LARGE if machine == "x86_64" else 0
    at = _FILE_HEADER.size
    strings_at, section_names_at = at + len(symbols), at + len(symbols) + len(strings)
    headers_at = -(-(section_names_at + len(section_names)) // 8) * 8
    headers = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (name_at[0], _SHT_NOBITS, _SHF_WRITE | _SHF_ALLOC | large, 0, at, nbytes, 0, 0, PAGE, 0),
        (name_at[1], _SHT_SYMTAB, 0, 0, at, len(symbols), 3, 1, 8, _SYMBOL_ENTRY.size),
        (name_at[2], _SHT_STRTAB, 0, 0, strings_at, len(strings), 0, 0, 1, 0),
        (name_at[3], _SHT_STRTAB, 0, 0, section_names_at, len(section_names), 0, 0, 1, 0),
        (name_at[4], _SHT_PROGBITS, 0, 0, at, 0, 0, 0, 1, 0),
    ]
    relocatable = 1
    header = _FILE_HEADER.pack(
        _IDENT, relocatable, _MACHINES[machine], 1, 0, 0, headers_at, 0, _FILE_HEADER.size, 0, 0,
        _SECTION_HEADER.size, len(headers), 4,
    )  # fmt: skip
    body = (header + symbols + strings + section_names).ljust(headers_at, b"\0")
    return body + b"".join(_SECTION_HEADER.pack(*h) for h in headers)


@dataclass
class _Elf:
    """The headers of a linked library, read and written in place."""

    file: BinaryIO
    program_at: int
    programs: list[list[int]]
    section_at: int
    sections: list[list[int]]
    names: bytes

    @classmethod
    def read(cls, file: BinaryIO) -> _Elf:
        file.seek(0)
        raw = file.read(_FILE_HEADER.size)
        if len(raw) < _FILE_HEADER.size or raw[:6] != _IDENT[:6]:
            raise WeightsError("the linker's output is not a 64-bit little-endian ELF file")
        header = _FILE_HEADER.unpack(raw)
        program_at, section_at, num_programs, num_sections, names_index = (header[i] for i in (5, 6, 10, 12, 13))

        def table(at: int, count: int, entry: struct.Struct) -> list[list[int]]:
            file.seek(at)
            return [list(entry.unpack(file.read(entry.size))) for _ in range(count)]

        programs = table(program_at, num_programs, _PROGRAM_HEADER)
        sections = table(section_at, num_sections, _SECTION_HEADER)
        file.seek(sections[names_index][4])
        return cls(file, program_at, programs, section_at, sections, file.read(sections[names_index][5]))

    def section(self, names: tuple[bytes, ...]) -> int:
        """The index of the first section with one of these names; WeightsError when there is none."""
        for i, section in enumerate(self.sections):
            name = self.names[section[0] : self.names.index(b"\0", section[0])]
            if name in names:
                return i
        raise WeightsError("the linker has dropped the section of the weights")

    def segment(self, address: int, size: int) -> int:
        """The index of the PT_LOAD that ends with [address, address + size)."""
        for i, (kind, _, _, start, _, _, memory, _) in enumerate(self.programs):
            if kind == _PT_LOAD and start <= address and start + memory == address + size:
                return i
        raise WeightsError("the weights are not the last thing in their segment: this linker's layout is not supported")

    def write_headers(self) -> None:
        for at, table, entry in (
            (self.program_at, self.programs, _PROGRAM_HEADER),
            (self.section_at, self.sections, _SECTION_HEADER),
        ):
            self.file.seek(at)
            self.file.write(b"".join(entry.pack(*row) for row in table))


def append_image(path: Path, image: WeightImage) -> None:
    """Appends `image` to the library at `path`, which was linked with `placeholder_object(image.size)`.

    The program header that covers the section may also cover other data in front of it (the linker's
    choice); those bytes are copied in front of the image. The file is changed in place. Raises WeightsError
    when the layout is not as expected or when the image yields another number of bytes than it says.
    """
    with open(path, "r+b") as file:
        elf = _Elf.read(file)
        number = elf.section((SECTION, b".lbss"))
        section = elf.sections[number]
        address, size = section[3], section[5]
        if size != image.size:
            raise WeightsError(f"the section of the weights has {size} bytes, the image {image.size}")
        segment = elf.programs[elf.segment(address, size)]
        start, offset, file_size = segment[3], segment[2], segment[5]
        lead = address - start
        file.seek(offset)
        front = file.read(file_size).ljust(lead, b"\0")
        file.seek(0, 2)
        base = -(-file.tell() // PAGE) * PAGE + start % PAGE
        file.seek(base)
        file.write(front)
        written = 0
        for chunk in image.chunks():
            written += len(memoryview(chunk).cast("B"))
            file.write(chunk)
        if written != size:
            raise WeightsError(f"the weight image has {written} bytes instead of {size}")
        segment[2], segment[5] = base, segment[6]
        section[1], section[4] = _SHT_PROGBITS, base + lead
        if lead == 0:
            segment[1] = _PF_R
            section[2] &= ~_SHF_WRITE
        elf.write_headers()
