"""Tables as text: columns side by side, cells wrapped between words and never inside."""

import textwrap
from collections.abc import Sequence

FACTS = ("what", "value")
"""The columns of a table that says something about one thing."""
_GAP = "  "
_SHORT = 18  # a cell as short as a guarantee stays on one line


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], width: int
) -> tuple[list[str], list[str]]:
    r"""Lines of the heading, then a rule and the rows; none longer than ``width``.

    Needs `least_width`.

    >>> head, body = table(["name", "regret"], [["etc", "120"], ["flow-ucb", "7"]], [1], 40)
    >>> print("\n".join(head + body))
     name      regret
     ────────────────
     etc          120
     flow-ucb       7
    """
    every = list(zip(columns, *rows, strict=True))
    natural = [max(map(_length, cells)) for cells in every]
    least = [_narrowest(*cells) for cells in every]
    if sum(natural) + len(_GAP) * len(natural) > width:  # then headings are the first to wrap
        natural = [
            max(low, *map(len, cells[1:]), 0) for low, cells in zip(least, every, strict=True)
        ]
    widths = _shared(natural, least, width - len(_GAP) * len(natural))
    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    body = [line for row in rows for line in _lines(row, widths, right)]
    return _lines(columns, widths, right), [f" {rule}", *body]


def least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Of a table whose short cells and words are whole."""
    every = zip(columns, *rows, strict=True)
    return sum(_narrowest(*cells) + len(_GAP) for cells in every)


def as_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A paragraph per row, a line per column, where a table would not fit.

    Facts are called by what they are, not by the names of their columns.
    """
    lines: list[str] = []
    for row in rows:
        if tuple(columns) == FACTS:
            named = [": ".join(part for part in row if part)]
        else:
            named = [f"{n}: {cell}" for n, cell in zip(columns, row, strict=True) if cell]
        lines += [line for text in named for line in _wrapped(text, width)] + [""]
    return lines[:-1]


def _narrowest(name: str, *cells: str) -> int:
    """How narrow a column may be: short cells stay on one line, words in one piece."""
    longest = max(map(_length, cells), default=0)
    whole = longest if longest <= _SHORT else _longest_word(cells)
    return max(whole, _longest_word([name]))


def _length(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


def _shared(natural: Sequence[int], least: Sequence[int], space: int) -> list[int]:
    """Widths that fit into ``space``: the widest columns give way, none below its least."""
    widths = list(natural)
    while sum(widths) > space:
        able = [i for i, width in enumerate(widths) if width > least[i]]
        if not able:
            break
        widths[max(able, key=widths.__getitem__)] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> list[str]:
    """A row as lines, as many as its longest cell needs."""
    wrapped = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, wrapped))
    lines = []
    for number in range(height):
        parts = [cell[number] if number < len(cell) else "" for cell in wrapped]
        placed = [
            part.rjust(width) if index in right else part.ljust(width)
            for index, (part, width) in enumerate(zip(parts, widths, strict=True))
        ]
        lines.append(f" {_GAP.join(placed)}".rstrip())
    return lines


def _wrapped(cell: str, width: int) -> list[str]:
    """A cell's lines; a line break that it brings along stays one."""
    return [
        line
        for part in cell.split("\n")
        for line in textwrap.wrap(
            part, max(width, 1), break_long_words=False, break_on_hyphens=False
        )
        or [""]
    ]
