"""What all sources of a table have in common."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from discreet._spelling import quoted
from discreet._types import IntArray
from discreet.errors import InvalidInputError
from discreet.mdp.vocabulary import nearest


@dataclass(frozen=True)
class Part:
    """Some rows of a table.

    Attributes:
        columns: name -> the column's values as a list, made when it is asked for.
        places: ``int64[rows]``, where each row stands: its number, or its line in a file.
    """

    columns: Mapping[str, Sequence[object]]
    places: IntArray


class Source(Protocol):
    """A table that can be read once, from top to bottom."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """Its rows, with at least these columns."""

    def at(self, place: int) -> str:
        """A row's place in words."""


def check_columns(source: Source, needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column or has it twice."""
    for name in needed:
        found = list(source.names).count(name)
        if found > 1:
            raise InvalidInputError(
                f"Expected one column {quoted(name)}, got {found}; rename all but one."
            )
        if not found:
            raise InvalidInputError(
                f"Expected a column {quoted(name)}, got {_listed(source.names)}; "
                f"{nearest(name, source.names)} Say which column is which with "
                f"columns={{role: name}}, and give the table a header if it has none."
            )


def refusal(rule: str, value: object, column: str, at: str, remedy: str) -> InvalidInputError:
    """One sentence with the rule, the value, its column and place, and the remedy."""
    return InvalidInputError(
        f"Expected {rule}, got {quoted(value)} in column {quoted(column)}, {at}; {remedy}"
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(quoted(name, 30) for name in names[:12])
    return f"{listed or 'none'}{', ...' if len(names) > 12 else ''}"
