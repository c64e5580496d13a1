"""`Preset`: one algorithm of one paper, everything as printed, under one name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from discreet._plain import Plain
    from discreet.privacy.trust import TrustModel


class Printed(NamedTuple):
    """One printed constant.

    Attributes:
        formula: in the letters of the paper.
        where: section, equation, line or table.
        run: what is run instead, where that cannot be run or is inconsistent; else empty.
    """

    formula: str
    where: str
    run: str = ""


@dataclass(frozen=True)
class Reference:
    """The problem that a preset's numbers are stated for.

    Attributes:
        states: S (X in 000, 001, 004).
        actions: A.
        horizon: H.
        episodes: K.
        epsilon: as claimed.
        delta: as claimed.
        environment: of that size, by its registered name.
        parameters: its parameters.
    """

    states: int
    actions: int
    horizon: int
    episodes: int
    epsilon: float
    delta: float
    environment: str
    parameters: Mapping[str, "Plain"] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivered:
    """What a printed protocol gives to one user, by exact accounting under replace-one.

    Attributes:
        epsilon: None if no finite one is delivered.
        delta: one if nothing is.
        why: in one sentence.
        refuted_from: shuffled batches: the least number of users for which the claim is refuted.
            An epsilon of None then says that nothing is *proven* for smaller ones either.
    """

    epsilon: float | None
    delta: float
    why: str
    refuted_from: int | None = None

    def to_dict(self) -> "dict[str, Plain]":
        said: dict[str, Plain] = {"epsilon": self.epsilon, "delta": self.delta, "why": self.why}
        return said if self.refuted_from is None else said | {"refuted_from": self.refuted_from}


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A paper's algorithm with its privatizer, constants and schedule.

    Attributes:
        name: what ``paper=`` takes.
        paper: its number.
        algorithm: as the paper calls it.
        learner: its name in the roster.
        trust: the trust model's short name.
        mechanism: of the release.
        calibration: which printed constants the release has.
        settings: of the learner, as printed.
        constants: what is printed and where, and what is run where that is something else.
        deviations: what is inconsistent or missing in print, and what is done instead.
        reference: the problem that ``delivers`` is stated for.
        delivers: to one user, for the view that the printed protocol gives.
        if_only_sums: the same if the analyser saw nothing but sums, where that differs.
        delta: unless the caller gives one; 0 where the mechanism is pure.
    """

    name: str
    paper: str
    algorithm: str
    learner: str
    trust: Literal["central", "local", "shuffle"]
    mechanism: str
    calibration: str
    settings: Mapping[str, "Plain"]
    constants: Mapping[str, Printed]
    deviations: tuple[str, ...]
    reference: Reference
    delivers: Delivered
    if_only_sums: Delivered | None = None
    delta: float = 0.0

    def title(self, calibration: str | None = None) -> str:
        """What tables call a run: a repaired one is not called as the printed one is."""
        repaired = ", exact noise" if self.noise(calibration) == "exact" else ""
        return f"{self.algorithm}, paper {self.name}{repaired}"

    def noise(self, calibration: str | None = None) -> str:
        """The calibration of a run: as printed (None, ``"paper"``), or ``"exact"``.

        Raises:
            InvalidInputError: that of another paper, a mixture which nobody prints.
        """
        if calibration in (None, "", "paper", self.calibration):
            return self.calibration
        if calibration != "exact":
            raise InvalidInputError(
                f"Expected calibration 'exact' or {self.calibration!r} beside paper {self.name!r}, "
                f"got {calibration!r}, which mixes papers; take a learner and a trust model for "
                f"mixtures."
            )
        return "exact"

    def trust_model(
        self, epsilon: float | None, delta: float | None = None, calibration: str | None = None
    ) -> "TrustModel":
        """The trust model of a run.

        Args:
            epsilon: as claimed.
            delta: as claimed; None is the preset's own.
            calibration: ``"exact"`` for the same mechanism with noise that keeps the claim; None
                is as printed.
        """
        from discreet.privacy.trust import make_trust

        if epsilon is None:
            raise InvalidInputError(
                f"Expected an epsilon for paper {self.name!r}, got none; write for instance "
                f"paper={self.name!r}, epsilon=1."
            )
        return make_trust(
            self.trust,
            epsilon=epsilon,
            delta=self.delta if delta is None else delta,
            mechanism=self.mechanism,
            calibration=self.noise(calibration),
        )

    def seen(
        self, guarantee: Guarantee, why: str | None = None, batches: Sequence[int] = ()
    ) -> Guarantee:
        """The guarantee of a run as printed: of the view that the printed protocol gives.

        Our simulation adds messages up; the analyser of 000 and 001 receives them as they are.

        Args:
            guarantee: of the sums.
            why: the view gives no more, for the size of this run; None is for the reference.
            batches: that were played.
        """
        if self.if_only_sums is None or guarantee.claimed is None:
            return guarantee
        largest = f"; the largest batch here had {max(batches):,} users" if batches else ""
        note = f"{why or self.delivers.why}{largest}; if only sums were seen: {_pair(guarantee)}"
        return replace(
            guarantee,
            epsilon=math.inf,
            delta=1.0,
            claimed=f"{guarantee.claimed} by paper {self.paper}",
            assumptions=(*guarantee.assumptions, note),
        )

    def to_dict(self) -> "dict[str, Plain]":
        """What `discreet list papers --json` says."""
        said: dict[str, Plain] = {
            "name": self.name,
            "paper": self.paper,
            "algorithm": self.algorithm,
            "summary": f"{self.algorithm} as paper {self.paper} prints it, {self.mechanism} noise",
            "learner": self.learner,
            "trust": self.trust,
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "settings": dict(self.settings),
            "constants": {n: [part for part in one if part] for n, one in self.constants.items()},
            "reference": asdict(self.reference),
            "delivers": self.delivers.to_dict(),
        }
        if self.if_only_sums is not None:
            said["delivers_if_only_sums_are_seen"] = self.if_only_sums.to_dict()
        return said | {"deviations": list(self.deviations)}


def _pair(guarantee: Guarantee) -> str:
    from discreet.privacy.guarantee import rounded_up

    return f"({rounded_up(guarantee.epsilon)}, {rounded_up(guarantee.delta, 3)})"
