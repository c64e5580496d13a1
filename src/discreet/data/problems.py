"""`Problems`: what does not fit in a table. A reader stops at the first, a check lists them all.

Both run the same code: whoever finds something calls `Problems.add`, which raises when a table is
read and goes on when it is checked. Everything here shows raw data, to the operator who has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from discreet._spelling import quoted
from discreet._types import Plain
from discreet.errors import InvalidInputError

_EXAMPLES = 3


class Shown(str):
    """What a check says beside a place in its own words; anything else is quoted."""

    __slots__ = ()


@dataclass
class Finding:
    """One kind of problem.

    Attributes:
        kind: in a few words.
        mend: the line of the design file that would mend it, or what to do with the table.
        count: how often it was found.
        examples: the first places, with what stands there.
    """

    kind: str
    mend: str
    count: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, for JSON."""
        shown: list[Plain] = [{"place": place, "value": value} for place, value in self.examples]
        return {"kind": self.kind, "count": self.count, "examples": shown, "mend": self.mend}


class Problems:
    """All that was found so far; without ``collect`` the first is raised.

    >>> problems = Problems(collect=True)
    >>> problems.add("no number", "correct it", ["line 3"], ["x"], "Expected a number.")
    >>> problems.found[0].count
    1
    """

    def __init__(self, *, collect: bool = False) -> None:
        self.collect = collect
        self._kinds: dict[str, Finding] = {}

    @property
    def found(self) -> list[Finding]:
        """One entry for each kind, in the order in which they were found."""
        return list(self._kinds.values())

    def add(
        self,
        kind: str,
        mend: str,
        places: Sequence[str],
        values: Sequence[object],
        sentence: str,
        count: int | None = None,
    ) -> None:
        """Note that ``kind`` stands at ``places``, of which a few are enough with a ``count``.

        Raises:
            InvalidInputError: with the sentence, unless problems are collected.
        """
        if not self.collect:
            raise InvalidInputError(sentence)
        problem = self._kinds.setdefault(kind, Finding(kind, mend))
        problem.mend = mend
        problem.count += len(places) if count is None else count
        room = _EXAMPLES - len(problem.examples)
        for place, value in list(zip(places, values, strict=True))[:room]:
            text = str(value) if isinstance(value, Shown) else quoted(value, 30)
            problem.examples.append((place.partition(" of ")[0], text))


@dataclass(frozen=True)
class TableProblems:
    """What a check of a table found.

    Attributes:
        rows: that could be read.
        people: with a name.
        problems: none, if the table can be counted.
    """

    rows: int
    people: int
    problems: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, for JSON."""
        return {
            "rows": self.rows,
            "people": self.people,
            "problems": [problem.to_dict() for problem in self.problems],
        }
