"""What the tools of adversarial learners share: regret as a share of the uniform policy's."""

from typing import Any

import discreet
from discreet.mdp.layered import LayeredMDP
from discreet.mdp.losses import LossSequence
from discreet.privacy.trust import TrustModel


def regrets(
    mdp: LayeredMDP, losses: LossSequence, trust: TrustModel, seed: int, **settings: Any
) -> tuple[float, float]:
    """Of one run over all the losses, and of the uniform policy; ``settings`` name the learner."""
    result = discreet.learn(
        mdp, trust=trust, episodes=losses.episodes, seed=seed, losses=losses, **settings
    )
    return result.final_regret, result.extras["uniform_regret"]
