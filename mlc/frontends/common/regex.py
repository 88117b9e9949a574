"""Regular expressions as programs for the runtime's matcher (`mlc_text_match`): RE2 syntax, no flags.

Thompson, "Programming techniques: Regular expression search algorithm", CACM 1968. An instruction is a list of numbers:
`0` matched, `1 a b` go on at both, `2 negated low high …` takes one character in (or not in) the ranges, `3` begin of
the text, `4` its end, `5` a word's boundary, `6` none. Numbers of instructions are counted from the start.
"""

from __future__ import annotations

from collections.abc import Callable

from mlc.frontends.report import NodeError

MATCH, SPLIT, SET, BEGIN, END, BOUNDARY, NO_BOUNDARY = range(7)
LARGEST = 0x10FFFF
MOST_REPEATS = 1000  # RE2's limit
MOST_INSTRUCTIONS = 20000
Ranges = list[tuple[int, int]]
Emit = Callable[[], None]

_DIGITS: Ranges = [(0x30, 0x39)]
_WORD: Ranges = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACES: Ranges = [(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)]
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACES}
_CONTROLS = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "v": 0x0B, "a": 0x07}


def inverse(ranges: Ranges) -> Ranges:
    """The characters outside of `ranges`."""
    result, following = [], 0
    for low, high in sorted(ranges):
        if following < low:
            result.append((following, low - 1))
        following = max(following, high + 1)
    return [*result, (following, LARGEST)] if following <= LARGEST else result


class _Compiler:
    """A recursive descent over the pattern; pieces are functions that append their instructions."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.program: list[list[int]] = []

    def error(self, what: str) -> NodeError:
        return NodeError(f"the pattern '{self.pattern}' has {what} at {self.at}", "use RE2's syntax without flags")

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def run(self) -> list[list[int]]:
        piece = self.alternatives()
        if self.peek():
            raise self.error("an unmatched ')'")
        piece()
        self.append(MATCH)
        return self.program

    def append(self, *instruction: int) -> int:
        if len(self.program) >= MOST_INSTRUCTIONS:
            raise NodeError("the pattern is too large", "repeat less")
        self.program.append(list(instruction))
        return len(self.program) - 1

    def alternatives(self) -> Emit:
        pieces = [self.sequence()]
        while self.accept("|"):
            pieces.append(self.sequence())
        return pieces[0] if len(pieces) == 1 else lambda: self._either(pieces)

    def _either(self, pieces: list[Emit]) -> None:
        ends = []
        for piece in pieces[:-1]:
            split = self.append(SPLIT, len(self.program) + 1, 0)
            piece()
            ends.append(self.append(SPLIT, 0, 0))
            self.program[split][2] = len(self.program)
        pieces[-1]()
        for end in ends:
            self.program[end][1:] = [len(self.program)] * 2

    def sequence(self) -> Emit:
        pieces: list[Emit] = []
        while self.peek() not in ("", "|", ")"):
            pieces.append(self.repeated(self.atom()))

        def emit() -> None:
            for piece in pieces:
                piece()

        return emit

    def repeated(self, piece: Emit) -> Emit:
        while True:
            if self.accept("*"):
                piece = self._repeat(piece, 0, None)
            elif self.accept("+"):
                piece = self._repeat(piece, 1, None)
            elif self.accept("?"):
                piece = self._repeat(piece, 0, 1)
            elif self.peek() == "{":
                bounds = self._bounds()
                if bounds is None:
                    return piece
                piece = self._repeat(piece, *bounds)
            else:
                return piece
            self.accept("?")  # which match is found does not matter

    def _bounds(self) -> tuple[int, int | None] | None:
        """`{2}`, `{2,}` or `{2,3}`; None for a brace that stands for itself."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self.at = end + 1
        bounds = int(low), int(high) if high else None if comma else int(low)
        if bounds[0] > MOST_REPEATS or (bounds[1] is not None and not bounds[0] <= bounds[1] <= MOST_REPEATS):
            raise self.error(f"the repetition {bounds}")
        return bounds

    def _repeat(self, piece: Emit, low: int, high: int | None) -> Emit:
        def emit() -> None:
            for _ in range(low):
                piece()
            if high is None:
                loop = self.append(SPLIT, len(self.program) + 1, 0)
                piece()
                self.append(SPLIT, loop, loop)
                self.program[loop][2] = len(self.program)
                return
            skips = []
            for _ in range(high - low):
                skips.append(self.append(SPLIT, len(self.program) + 1, 0))
                piece()
            for skip in skips:
                self.program[skip][2] = len(self.program)

        return emit

    def atom(self) -> Emit:
        if self.accept("("):
            if self.accept("?") and not self.accept(":"):
                if not (self.accept("P<") or self.accept("<")) or self.peek() in ("=", "!"):
                    raise self.error("a group of a kind that is not supported")
                self.at = self.pattern.find(">", self.at) + 1
            piece = self.alternatives()
            if not self.accept(")"):
                raise self.error("a missing ')'")
            return piece
        for text, code in (
            ("^", BEGIN),
            ("$", END),
            ("\\A", BEGIN),
            ("\\z", END),
            ("\\b", BOUNDARY),
            ("\\B", NO_BOUNDARY),
        ):
            if self.accept(text):
                return lambda code=code: self._plain(code)  # type: ignore[misc]
        if self.peek() in ("*", "+", "?"):
            raise self.error("nothing to repeat")
        ranges = (
            self.bracket() if self.accept("[") else inverse([(0x0A, 0x0A)]) if self.accept(".") else self.character()
        )
        return lambda: self._plain(SET, *(bound for pair in ranges for bound in pair))

    def _plain(self, *instruction: int) -> None:
        self.append(*instruction)

    def character(self) -> Ranges:
        """A character, or an escape."""
        if not self.accept("\\"):
            code = ord(self.peek())
            self.at += 1
            return [(code, code)]
        letter = self.peek()
        self.at += 1
        if letter.lower() in _CLASSES:
            ranges = _CLASSES[letter.lower()]
            return inverse(ranges) if letter.isupper() else ranges
        if letter == "x":
            end = self.pattern.find("}", self.at) if self.accept("{") else self.at + 2
            digits = self.pattern[self.at : end]
            self.at = end + (self.pattern[end : end + 1] == "}")
            try:
                return [(int(digits, 16), int(digits, 16))]
            except ValueError:
                raise self.error("a bad escape") from None
        if letter in _CONTROLS:
            return [(_CONTROLS[letter], _CONTROLS[letter])]
        if not letter or letter.isalnum():
            raise self.error(f"the escape '\\{letter}', which is not supported,")
        return [(ord(letter), ord(letter))]

    def bracket(self) -> Ranges:
        """A class in brackets."""
        negated, ranges = self.accept("^"), []
        first = True
        while first or self.peek() != "]":
            if not self.peek() or self.pattern.startswith("[:", self.at):
                raise self.error("a class that is not supported, or has no end,")
            first = False
            own = self.character()
            follows = self.pattern[self.at : self.at + 2]
            if len(own) == 1 and own[0][0] == own[0][1] and follows[:1] == "-" and follows not in ("-", "-]"):
                self.at += 1
                own = [(own[0][0], self.character()[0][1])]
            ranges += own
        self.at += 1
        return inverse(ranges) if negated else sorted(ranges)


def program(pattern: str) -> list[int]:
    """The program of a pattern: how many instructions, where each begins in what follows, then the instructions.

    Raises NodeError for a pattern that is wrong, or has what is not supported."""
    instructions = _Compiler(pattern).run()
    starts: list[int] = []
    code: list[int] = []
    for instruction in instructions:
        starts.append(len(code))
        code += [instruction[0], len(instruction) - 1, *instruction[1:]]
    return [len(instructions), *starts, *code]
