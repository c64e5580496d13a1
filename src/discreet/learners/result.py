"""`Result`: what a run leaves behind."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet._plain import Plain
from discreet.learners.regret import RegretCurve
from discreet.mdp.policies import Policy
from discreet.privacy.guarantee import Guarantee


def noise_deviations(variances: Mapping[str, float]) -> dict[str, float]:
    """Standard deviations of the noise, from a plan's variances."""
    return {statistic: math.sqrt(variance) for statistic, variance in variances.items()}


@dataclass(frozen=True, eq=False)
class Result:
    """One finished run of one learner.

    Attributes:
        learner: its registered name.
        regret: exact expected regret, log-spaced.
        guarantee: what was delivered to every user of the run.
        policy: the policy after the last episode.
        episodes: K.
        seed: the run's seed.
        settings: the learner's resolved settings, defaults included.
        extras: further series or numbers a learner leaves (batches, certificates).
        mechanism: of the release, resolved: what "auto" stood for.
        noise: statistic -> standard deviation of the noise on one of its counters, as the run's own
            plan has it: in a release of all users at once (batches), in the last release (streams).
            Zero without privacy.
    """

    learner: str
    regret: RegretCurve
    guarantee: Guarantee
    policy: Policy
    episodes: int
    seed: int
    settings: dict[str, Plain] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    mechanism: str = ""
    noise: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line: what ran, what it promised, what it lost."""
        return (
            f"Result({self.learner!r}, {self.guarantee}, episodes={self.episodes:,}, "
            f"final_regret={self.final_regret:,.1f}, mechanism={self.mechanism!r})"
        )

    @property
    def final_regret(self) -> float:
        """Cumulative expected regret after all episodes."""
        return float(self.regret.values[-1])
