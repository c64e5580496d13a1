"""`Preset`: one algorithm of one paper, everything as printed, under one name."""

import math
from collections.abc import Mapping
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
    """

    formula: str
    where: str


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
    """

    epsilon: float | None
    delta: float
    why: str


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
        constants: what is printed and where.
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
            calibration=self.calibration if calibration is None else calibration,
        )

    def seen(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a run as printed: of the view that the printed protocol gives.

        Our simulation adds messages up; the analyser of 000 and 001 receives them as they are.
        """
        if self.if_only_sums is None or guarantee.claimed is None:
            return guarantee
        note = f"{self.delivers.why}; if only sums were seen: {_pair(guarantee)}"
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
            "constants": {name: list(one) for name, one in self.constants.items()},
            "reference": asdict(self.reference),
            "delivers": asdict(self.delivers),
        }
        if self.if_only_sums is not None:
            said["delivers_if_only_sums_are_seen"] = asdict(self.if_only_sums)
        return said | {"deviations": list(self.deviations)}


def _pair(guarantee: Guarantee) -> str:
    from discreet.privacy.guarantee import rounded_up

    return f"({rounded_up(guarantee.epsilon)}, {rounded_up(guarantee.delta, 3)})"
