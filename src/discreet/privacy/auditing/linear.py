"""Exact privacy of additive mechanisms, from how their draws enter what is published.

Everything a release publishes is ``o = d + B·z``, where d depends on data and z are independent
draws whose laws are known. `probing` reads B, the laws and the moves ``D = d' - d`` of neighbours
off the real code. An attacker who sees all of o can tell the neighbours apart exactly as well as by
looking at ``z`` against ``z + c`` for some c with B·c = D:

* no such c: some combination of outputs carries no noise at all (shared noise): epsilon = inf;
* B invertible with an integer c (one-shot releases, trees): compose the shifts c exactly;
* Gaussian z: the shortest c, in standard deviations, gives the exact curve (Balle and Wang 2018);
* Laplace z: every c proves epsilon <= sum |c_j| / scale_j; the least of them is a linear program.

Nothing here knows what a tree or a Toeplitz matrix is.
"""

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.errors import UnsupportedError
from discreet.privacy.auditing.exact import (
    Composition,
    exact_curve,
    gaussian_delta,
    gaussian_epsilon,
)
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.auditing.probes import Law

_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Additive:
    """A mechanism seen as ``o = d + B·z`` with all moves D of one user."""

    laws: tuple[Law, ...]
    response: FloatArray
    moves: tuple[FloatArray, ...]
    places: tuple[int, ...] = ()
    """Which draw of the code each law is (bits that come in one sum are one law)."""

    def epsilon(self, delta: float) -> float:
        """The exact epsilon at ``delta``, over all neighbours."""
        return self.curve(1.0, delta)[0]

    def delta(self, epsilon: float) -> float:
        """The exact delta at ``epsilon``, over all neighbours."""
        return self.curve(epsilon, 0.0)[1]

    def curve(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Both: the exact epsilon at ``delta`` and the exact delta at ``epsilon``."""
        points = [self._point(index, epsilon, delta) for index in self._distinct]
        return max(found for found, _ in points), max(lost for _, lost in points)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations of the noise of all outputs."""
        means = self.response @ np.array([law.mean for law in self.laws])
        return means, np.sqrt(self.response**2 @ np.array([law.variance for law in self.laws]))

    @functools.cached_property
    def _both_ways(self) -> FloatArray:
        """All moves as columns; with noise that is not symmetric also their opposites."""
        moves = np.array(self.moves).T
        symmetric = all(law.symmetric for law in self.laws)
        return moves if symmetric else np.hstack([moves, -moves])

    @functools.cached_property
    def _distinct(self) -> list[int]:
        """Moves that no other one covers.

        A move is covered where another one hides the same shifts in the same laws and more besides:
        whoever tells the former apart can tell the latter, by looking away.
        """
        known = {index: self._counted(index) for index in range(self._both_ways.shape[1])}
        kept: list[int] = []
        order = sorted(known, key=lambda i: -sum((known[i] or Counter()).values()))
        for index in order:
            counted = known[index]
            covered = counted is not None and any(
                (larger := known[other]) is not None and counted <= larger for other in kept
            )
            if not covered:
                kept.append(index)
        return kept

    def _point(self, index: int, epsilon: float, delta: float) -> tuple[float, float]:
        shifts = self._shifts[index]
        if shifts is None:
            return math.inf, 1.0
        if not shifts.any():  # what is different is not counted
            return 0.0, 0.0
        counted = self._counted(index)
        if counted is not None:
            return _composed(frozenset(counted.items()), epsilon, delta)
        if self._gaussian:
            mu = float(np.linalg.norm(shifts / self._deviations))
            return gaussian_epsilon(mu, delta), gaussian_delta(mu, epsilon)
        found = self._least_absolute(index)
        # A bound on epsilon says nothing about delta below it.
        return found, 0.0 if found <= epsilon * (1 + _SAME) else math.nan

    @property
    def _gaussian(self) -> bool:
        return all(law.kind == "gaussian" for law in self.laws)

    @property
    def _deviations(self) -> FloatArray:
        return np.array([_deviation(law) for law in self.laws])

    @functools.cached_property
    def _shifts(self) -> list[FloatArray | None]:
        """For every move the shortest c with B·c = D, or None."""
        moves, scale = self._both_ways, self._deviations
        shifts = np.zeros((len(self.laws), moves.shape[1]))
        for outputs, draws in self._parts:
            scaled, *_ = np.linalg.lstsq(
                self.response[np.ix_(outputs, draws)] * scale[draws], moves[outputs], rcond=1e-12
            )
            shifts[draws] = scaled * scale[draws, None]
        short = np.abs(self.response @ shifts - moves).max(axis=0, initial=0.0)
        return [c if miss < _SAME else None for c, miss in zip(shifts.T, short, strict=True)]

    @functools.cached_property
    def _parts(self) -> list[tuple[IntArray, IntArray]]:
        """Outputs and draws that have to do with each other: counters, as a rule, one by one."""
        from scipy.sparse import bmat, csr_matrix
        from scipy.sparse.csgraph import connected_components

        linked = csr_matrix(self.response != 0)
        _, labels = connected_components(bmat([[None, linked], [linked.T, None]]))
        ends, starts = labels[: len(self.response)], labels[len(self.response) :]
        return [
            (np.flatnonzero(ends == part), np.flatnonzero(starts == part))
            for part in np.unique(starts)
        ]

    def shifts(self, index: int) -> FloatArray | None:
        """The shortest c with B·c = D for neighbour number ``index``, or None."""
        return self._shifts[index]

    def integer_shifts(self, index: int) -> IntArray | None:
        """The one c with B·c = D, if there is only one and it is an integer vector.

        Of bounded noise several may be summed; then the shortest c will do, as a bound.
        """
        shifts = self._shifts[index]
        bounded = all(law.kind == "table" for law in self.laws)
        if shifts is None or not (bounded or self.one_to_one):
            return None
        whole = np.rint(shifts)
        if np.abs(shifts - whole).max(initial=0.0) > _SAME * max(1.0, np.abs(whole).max()):
            return None
        return whole.astype(np.int64)

    @functools.cached_property
    def one_to_one(self) -> bool:
        """No two vectors of draws give the same output."""
        return all(
            np.linalg.matrix_rank(self.response[np.ix_(outputs, draws)]) == len(draws)
            for outputs, draws in self._parts
        )

    def _counted(self, index: int) -> Counter[tuple[Law, int]] | None:
        """How often each law hides each shift."""
        whole = self.integer_shifts(index) if all(law.exact for law in self.laws) else None
        if whole is None:
            return None
        return Counter((self.laws[i], self._signed(i, whole)) for i in np.flatnonzero(whole))

    def _signed(self, draw: Any, whole: IntArray) -> int:
        return abs(int(whole[draw])) if self.laws[draw].symmetric else int(whole[draw])

    def _least_absolute(self, index: int) -> float:
        from scipy.optimize import linprog

        if any(law.kind != "laplace" for law in self.laws):
            raise UnsupportedError("Only Laplace and Gaussian noise can be audited in mixtures.")
        prices = np.array([1 / law.scale for law in self.laws])
        found = linprog(
            np.r_[prices, prices],
            A_eq=np.hstack([self.response, -self.response]),
            b_eq=self._both_ways[:, index],
        )
        return float(found.fun) if found.status == 0 else math.inf


_Counted = frozenset[tuple[tuple[Law, int], int]]
"""Laws, the shifts that they hide, and how often."""


def _views(counted: _Counted) -> Composition:
    return [(law.pair(shift), times) for (law, shift), times in counted]


@functools.lru_cache(maxsize=512)
def _composed(counted: _Counted, epsilon: float, delta: float) -> tuple[float, float]:
    """Many paths hide the same shifts with the same laws."""
    return exact_curve(_views(counted), epsilon, delta)


def _deviation(law: Law) -> float:
    """What a shift of the draw is measured against: any positive number where it is exact."""
    return law.scale * math.sqrt(law.copies)


def additive(plan: Plan, *, users: int = 1) -> Additive:
    """The main path of a plan: `release` of a batch of ``users``, `add` of a whole stream.

    Args:
        plan: what to probe; use a small shape.
        users: the size of the batch (streams: the plan's own length).

    Raises:
        UnsupportedError: if the release is not data plus noise of a fixed law.
    """
    from discreet.privacy.auditing.paths.main import main_path
    from discreet.privacy.auditing.probing import probe

    return probe(main_path(plan, users))


def bitwise(plan: Plan, *, users: int = 1) -> bool:
    """Whether data and noise can be traded on the main path without changing a single bit."""
    from discreet.privacy.auditing.paths.main import main_path
    from discreet.privacy.auditing.probing import probe
    from discreet.privacy.auditing.trade import trades

    path = main_path(plan, users)
    return trades(path, probe(path))
