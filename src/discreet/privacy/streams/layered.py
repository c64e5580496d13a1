"""A stream of simulated users with adversarial losses, seen only through the layered release."""

from typing import TYPE_CHECKING

import numpy as np

from discreet._seeds import RunSeeds
from discreet._types import FloatArray
from discreet.mdp.layered import LayeredMDP
from discreet.privacy.adversarial import LayeredPlan
from discreet.privacy.loss_noise import LOSS_UNITS
from discreet.privacy.sampling.samplers import SimulationSampler

if TYPE_CHECKING:  # compiled modules load when used
    from discreet.privacy.streams.layered_kernels import LayeredUsers


class SimulatedLayers:
    """The users of one run.

    Args:
        mdp: where they live.
        plan: of the release.
        seeds: of the run; users draw from "environment" and "policy", the release from "noise".
        centred: with bandit feedback, users report l - 1/2.
    """

    def __init__(
        self, mdp: LayeredMDP, plan: LayeredPlan, seeds: RunSeeds, *, centred: bool = False
    ) -> None:
        from discreet.privacy.streams.layered_kernels import no_layered_counts

        self._mdp, self._plan = mdp, plan
        self._environment, self._policy = seeds.generator("environment"), seeds.generator("policy")
        self._noise = plan.open(SimulationSampler(seeds.generator("noise")))
        self._shift = 0.5 if centred else 0.0
        self._raw = no_layered_counts(mdp.shape.transitions)
        self._public = no_layered_counts(mdp.shape.transitions)

    def users(self, losses: FloatArray) -> "LayeredUsers":
        """The next users, one per loss vector ``losses[n, H, W, A]``."""
        from discreet.privacy.streams.layered_kernels import LayeredCounters, LayeredUsers

        count, horizon = len(losses), self._mdp.shape.horizon
        draws = (count, horizon)
        uniforms = np.stack([self._policy.random(draws), self._environment.random(draws)], axis=-1)
        return LayeredUsers(
            transitions=self._mdp.transitions,
            widths=self._mdp.widths,
            reported=self._reported(losses),
            uniforms=uniforms,
            noise=LayeredCounters(*self._noise.block(count)),
            raw=self._raw,
            public=self._public,
            path=np.zeros((horizon, 2), np.int64),
            full=self._plan.feedback == "full",
            shift=self._shift,
        )

    def _reported(self, losses: FloatArray) -> FloatArray:
        """Private losses are rounded to units."""
        if not self._plan.rounds_losses:
            return losses
        return np.rint(losses * LOSS_UNITS) / LOSS_UNITS
