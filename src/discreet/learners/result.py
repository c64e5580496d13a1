"""`Result`: what a run leaves behind."""

from dataclasses import dataclass, field
from typing import Any

from discreet.learners.regret import RegretCurve
from discreet.mdp.policies import Policy
from discreet.privacy.guarantee import Guarantee


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
        extras: further series or numbers a learner reports (batches, noise, certificates).
    """

    learner: str
    regret: RegretCurve
    guarantee: Guarantee
    policy: Policy
    episodes: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def final_regret(self) -> float:
        """Cumulative expected regret after all episodes."""
        return float(self.regret.values[-1])
