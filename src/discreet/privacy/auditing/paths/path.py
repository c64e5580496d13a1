"""A way from data to publication, with the neighbours between whom it must not tell apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from discreet._types import FloatArray
from discreet.privacy.sampling.samplers import Sampler

Kind = Literal["batch", "continual", "stationary", "layered", "vector", "honest"]
KINDS: tuple[Kind, ...] = ("batch", "continual", "stationary", "layered", "vector", "honest")
Run = Callable[[Sampler], FloatArray]
"""Everything published about one data set, as a function of the randomness."""


@dataclass(frozen=True, eq=False)
class Path:
    """One way through the library.

    Attributes:
        name: the public functions it goes through, such as ``add``.
        kind: of the plan.
        base: a data set.
        neighbours: data sets in which one user is another, by what is different.
        releases: how many releases a run publishes, one after the other.
        cells: values per release, first of all that is published (0: all of it is one release).
        note: what is special about the data set (its size, its length).
        simulated: draws stand for sums over users, so how many there are may follow the data.
        window: scalar draws to enumerate, if not all (first, last).
        blocks: noise is handed out ahead and added to true counts by the caller.
        ahead: noise is drawn now for what will be published later.
        thorough: short enough to be run hundreds of times.
        secure: the kinds of sampler to go through with.
    """

    name: str
    kind: Kind
    base: Run
    neighbours: Mapping[str, Run]
    releases: int = 1
    cells: int = 0
    note: str = ""
    simulated: bool = False
    window: tuple[int, int] | None = None
    blocks: bool = False
    ahead: bool = False
    thorough: bool = True
    secure: tuple[bool, ...] = field(default=(False, True))

    @property
    def label(self) -> str:
        """Name and note."""
        return f"{self.name} ({self.note})" if self.note else self.name

    def only(self, *names: str) -> "Path":
        """The same path with some of its neighbours."""
        return replace(self, neighbours={n: r for n, r in self.neighbours.items() if n in names})
