"""Users of a layered MDP with adversarial losses, compiled: episodes, counts, what is public."""

from typing import NamedTuple

import numpy as np

from discreet._jit import kernel
from discreet._seeds import RunSeeds
from discreet._types import FloatArray, IntArray
from discreet.adversarial.layered import LayeredMDP
from discreet.adversarial.mechanism import LayeredMechanism
from discreet.adversarial.noise import LOSS_UNITS
from discreet.privacy.sampling.samplers import SimulationSampler


class LayeredCounters(NamedTuple):
    """Cumulative counts ``[H, W, A, W]`` and ``[H, W, A]``, and losses ``[H, W, A]``.

    Losses are cumulative with full information, those of one episode with bandit feedback.
    """

    transitions: FloatArray
    visits: FloatArray
    losses: FloatArray


class LayeredUsers(NamedTuple):
    """Some consecutive users.

    Attributes:
        transitions: ``[H, W, A, W]``, of the true model.
        widths: ``[H + 1]``, of its layers.
        reported: ``[n, H, W, A]``, the losses as users report them.
        uniforms: ``[n, H, 2]``, draws for actions and next states.
        noise: of the release after each of them, ``[n, ...]``.
        raw: what was counted so far: for the release alone.
        public: what is released.
        path: ``[H, 2]``, the last user's (x, a) per step: for the release alone.
        full: everybody reports the losses of all pairs; otherwise of the visited ones.
        shift: what users subtract from a loss before they report it.
    """

    transitions: FloatArray
    widths: IntArray
    reported: FloatArray
    uniforms: FloatArray
    noise: LayeredCounters
    raw: LayeredCounters
    public: LayeredCounters
    path: IntArray
    full: bool
    shift: float


@kernel
def add_layered_user(users: LayeredUsers, k: int, policy: FloatArray) -> None:
    """User k of the block plays ``policy[H, W, A]``; then ``users.public`` is the next release."""
    _play(users, k, policy)
    raw, noise, public = users.raw, users.noise, users.public
    horizon, width, actions, successors = raw.transitions.shape
    for h in range(horizon):
        for x in range(width):
            for a in range(actions):
                public.visits[h, x, a] = raw.visits[h, x, a] + noise.visits[k, h, x, a]
                for y in range(successors):
                    public.transitions[h, x, a, y] = (
                        raw.transitions[h, x, a, y] + noise.transitions[k, h, x, a, y]
                    )
                public.losses[h, x, a] = noise.losses[k, h, x, a]
                if users.full:
                    raw.losses[h, x, a] += users.reported[k, h, x, a]
                    public.losses[h, x, a] += raw.losses[h, x, a]
    if not users.full:
        for h in range(users.path.shape[0]):
            x, a = users.path[h, 0], users.path[h, 1]
            public.losses[h, x, a] += users.reported[k, h, x, a] - users.shift


@kernel
def _play(users: LayeredUsers, k: int, policy: FloatArray) -> None:
    """One episode, added to the raw counts."""
    horizon, _, actions = policy.shape
    x = 0
    for h in range(horizon):
        a = _draw(policy[h, x], actions, users.uniforms[k, h, 0])
        y = _draw(users.transitions[h, x, a], users.widths[h + 1], users.uniforms[k, h, 1])
        users.raw.visits[h, x, a] += 1.0
        users.raw.transitions[h, x, a, y] += 1.0
        users.path[h, 0], users.path[h, 1] = x, a
        x = y


@kernel
def _draw(probabilities: FloatArray, n: int, uniform: float) -> int:
    """Index i with probability ``probabilities[i]``; rounding falls on the last possible one."""
    total, last = 0.0, 0
    for i in range(n):
        if probabilities[i] > 0.0:
            total += probabilities[i]
            last = i
            if uniform < total:
                return i
    return last


def no_layered_counts(shape: tuple[int, ...]) -> LayeredCounters:
    """Before the first user; ``shape`` is (H, W, A, W)."""
    return LayeredCounters(np.zeros(shape), np.zeros(shape[:3]), np.zeros(shape[:3]))


# A stream of simulated users with adversarial losses, seen only through the layered release.


class SimulatedLayers:
    """The users of one run.

    Args:
        mdp: where they live.
        plan: of the release.
        seeds: of the run; users draw from "environment" and "policy", the release from "noise".
        centred: with bandit feedback, users report l - 1/2.
    """

    def __init__(
        self, mdp: LayeredMDP, plan: LayeredMechanism, seeds: RunSeeds, *, centred: bool = False
    ) -> None:

        self._mdp, self._plan = mdp, plan
        self._environment, self._policy = seeds.generator("environment"), seeds.generator("policy")
        self._noise = plan.open(SimulationSampler(seeds.generator("noise")))
        self._shift = 0.5 if centred else 0.0
        self._raw = no_layered_counts(mdp.shape.transitions)
        self._public = no_layered_counts(mdp.shape.transitions)

    def users(self, losses: FloatArray) -> "LayeredUsers":
        """The next users, one per loss vector ``losses[n, H, W, A]``."""
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
