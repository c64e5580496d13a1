"""`Discretizer`: numeric columns become states, by cut points that are given.

Cut points are public: they stand in every table that names the states. So they come from a
textbook, a guideline or another population, never from the data of this study. A quantile or a
largest value is a statistic of private data (the largest value *is* one person's value), it would
be published without noise, and no guarantee of this library covers it. Who wants cuts that follow
the data must release them by a mechanism of their own and add its epsilon to the study's.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise, product
from typing import Literal, Self

import numpy as np

from discreet import _validate
from discreet._spelling import quoted
from discreet._types import FloatArray, IntArray, Plain
from discreet.data.vocabulary import check_names
from discreet.errors import InvalidInputError

MISSING, OUTSIDE = -1, -2
"""What `Cuts.bins` says of values that are refused."""


@dataclass(frozen=True, init=False)
class Cuts:
    """One numeric column, cut at given points: k points make k + 1 bins.

    A value on a cut point belongs to the bin above it.

    >>> pressure = Cuts("pressure", [90, 140], low=20, high=300, missing="bin")
    >>> pressure.names
    ('pressure < 90', 'pressure 90 to 140', 'pressure >= 140', 'pressure unknown')
    >>> pressure.bins(np.array([80, 90, 200, np.nan, 3000])).tolist()
    [0, 1, 2, 3, -2]

    Attributes:
        names: of the bins, with that of the unknown last if there is one.
        low: the least value that can be, as high is the largest; others are outside.
        outside: what to do with values that cannot be, infinite ones among them: ``"refuse"``,
            ``"clip"`` (the first or the last bin) or ``"missing"`` (as if nothing were there).
        missing: what to do with missing values: ``"refuse"``, or ``"bin"``, a bin of their own.
    """

    column: str
    points: tuple[float, ...]
    names: tuple[str, ...]
    low: float | None
    high: float | None
    outside: Literal["refuse", "clip", "missing"]
    missing: Literal["refuse", "bin"]

    def __init__(
        self,
        column: str,
        points: Iterable[float],
        *,
        names: Iterable[str] | None = None,
        low: float | None = None,
        high: float | None = None,
        outside: Literal["refuse", "clip", "missing"] = "refuse",
        missing: Literal["refuse", "bin"] = "refuse",
    ) -> None:
        _validate.choice(("refuse", "clip", "missing"), outside=outside)
        _validate.choice(("refuse", "bin"), missing=missing)
        if not isinstance(column, str) or not column:
            raise InvalidInputError(f"Expected the name of a column, got {quoted(column)}.")
        put = object.__setattr__
        put(self, "column", column)
        if isinstance(points, str) or not isinstance(points, Iterable):
            raise InvalidInputError(f"Expected a list of cut points, got {quoted(points)}.")
        numbers = list(points)
        for point in numbers:
            _validate.real(point=point)
        put(self, "points", tuple(map(float, numbers)))
        if not numbers or any(b <= a for a, b in pairwise(self.points)):
            raise InvalidInputError(
                f"Expected increasing cut points for {column!r}, at least one, got "
                f"{list(self.points)}."
            )
        for side, bound in (("low", low), ("high", high)):
            if bound is not None:
                _validate.real(**{f"bound of {column}": bound})
            put(self, side, None if bound is None else float(bound))
        put(self, "outside", outside)
        put(self, "missing", missing)
        if (low is not None and low >= self.points[0]) or (
            high is not None and high <= self.points[-1]
        ):
            raise InvalidInputError(
                f"Expected low < cut points < high for {column!r}, got low={self.low}, points "
                f"{list(self.points)}, high={self.high}."
            )
        between = [f"{_short(a)} to {_short(b)}" for a, b in pairwise(self.points)]
        outer = f"< {_short(self.points[0])}", f">= {_short(self.points[-1])}"
        parts = [outer[0], *between, outer[1], *(["unknown"] if missing == "bin" else [])]
        default = tuple(f"{column} {part}" for part in parts)
        given = default if names is None else check_names(names, f"bins of {column!r}")
        if len(given) != len(default):
            raise InvalidInputError(
                f"Expected {len(default)} names for the bins of {column!r} (one more than cut "
                f"points{', and one for missing values' if missing == 'bin' else ''}), got "
                f"{len(given)}."
            )
        put(self, "names", given)

    def bins(self, values: FloatArray) -> IntArray:
        """The bin of each value (NaN is missing); negative where a value is refused."""
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        found: IntArray = np.searchsorted(self.points, values, side="right").astype(np.int64)
        absent = np.isnan(values)
        beyond = (values < low) | (values > high) | np.isinf(values)
        if self.outside == "missing":
            absent |= beyond
        elif self.outside == "refuse":
            found[beyond] = OUTSIDE
        found[absent] = MISSING if self.missing == "refuse" else len(self.points) + 1
        return found

    @property
    def outside_rule(self) -> tuple[str, str, str]:
        """Rule and remedy for a value that cannot be, and the line of a design that mends it."""
        low = "" if self.low is None else f" >= {_short(self.low)}"
        high = "" if self.high is None else f" <= {_short(self.high)}"
        rule = f"a finite number{low}{' and' if low and high else ''}{high}"
        mend = 'outside = "clip" or "missing" in [[table.cuts]]'
        return rule, f"correct it, or write {mend}.", mend

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, for JSON or TOML."""
        plain: dict[str, Plain] = {
            "column": self.column,
            "points": list(self.points),
            "names": list(self.names),
            "outside": self.outside,
            "missing": self.missing,
        }
        bounds = {"low": self.low, "high": self.high}
        return {**plain, **{name: b for name, b in bounds.items() if b is not None}}


@dataclass(frozen=True, init=False)
class Discretizer:
    """Numeric columns -> states; several columns make product states, the last varying fastest.

    >>> sepsis = Discretizer(Cuts("pressure", [90]), Cuts("lactate", [2, 4]))
    >>> sepsis.names[0], sepsis.names[5]
    ('pressure < 90, lactate < 2', 'pressure >= 90, lactate >= 4')
    """

    cuts: tuple[Cuts, ...]

    def __init__(self, *cuts: Cuts) -> None:
        if not cuts or not all(isinstance(c, Cuts) for c in cuts):
            raise InvalidInputError(
                f"Expected one Cuts(column, points) for each column, got {quoted(cuts)}."
            )
        if len({c.column for c in cuts}) < len(cuts):
            raise InvalidInputError(
                f"Expected different columns, got {', '.join(quoted(c.column) for c in cuts)}."
            )
        if math.prod(len(c.names) for c in cuts) > 1_000_000:
            raise InvalidInputError(
                "Expected at most 1000000 states, got "
                + " x ".join(str(len(c.names)) for c in cuts)
                + "; cut fewer columns, or at fewer points."
            )
        object.__setattr__(self, "cuts", cuts)
        check_names(self.names, "states")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the states, for a `Vocabulary` and its tables."""
        return tuple(", ".join(parts) for parts in product(*(c.names for c in self.cuts)))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(c.column for c in self.cuts)

    def combine(self, bins: list[IntArray]) -> IntArray:
        """The product states of one array of bins per column."""
        sizes = [len(c.names) for c in self.cuts]
        pairs = zip(bins[1:], sizes[1:], strict=True)
        return reduce(lambda states, pair: states * pair[1] + pair[0], pairs, bins[0])

    def to_dict(self) -> dict[str, Plain]:
        """Plain values, for JSON or TOML."""
        return {"cuts": [c.to_dict() for c in self.cuts]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Plain]) -> Self:
        """The inverse of `to_dict`.

        >>> sepsis = Discretizer(Cuts("pressure", [90], low=0), Cuts("lactate", [2, 4]))
        >>> Discretizer.from_dict(sepsis.to_dict()) == sepsis
        True
        """
        entries = plain.get("cuts")
        if set(plain) != {"cuts"} or not isinstance(entries, list):
            raise InvalidInputError(f"Expected a discretizer with cuts, got {sorted(plain)}.")
        try:
            return cls(*(Cuts(**entry) for entry in entries))
        except TypeError as error:
            raise InvalidInputError(f"Expected the cuts of a discretizer: {error}.") from None


def _short(number: float) -> str:
    """As a person writes it, without losing a digit."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
