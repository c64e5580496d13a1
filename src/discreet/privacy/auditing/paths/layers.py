"""Layered plans: noise on counts and losses in blocks, added to a user's episode as documented."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet._types import FloatArray
from discreet.adversarial.mechanism import LayeredMechanism
from discreet.adversarial.noise import LOSS_UNITS
from discreet.privacy.auditing.neighbours import EVERYTHING, LAST_STEP
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.sampling.samplers import Sampler

NAME = "LayeredNoise.block"
_WATCH = 4
_LOSSES = "losses only"


@dataclass(frozen=True, eq=False)
class LayeredUser:
    """One episode, in the padded arrays of a learner: counts, and losses in released units."""

    transitions: FloatArray
    visits: FloatArray
    losses: FloatArray


def layered_paths(
    plan: LayeredMechanism, watch: int = _WATCH, *, centred: bool = False
) -> Iterator[Path]:
    """Any one of the users is replaced: in everything, in the losses only, in the last step only.

    ``centred``: bandit users hand over l - 1/2 on the pairs they visited.
    """
    watch = min(watch, plan.episodes)
    full = plan.feedback == "full"
    low, high = (-0.5, 0.5) if centred else (0.0, 1.0)
    last = plan.size.horizon - 1
    usual = _user(plan, set(), high, full=full)
    others = {
        EVERYTHING: _user(plan, set(range(last + 1)), low if full else high, full=full),
        _LOSSES: _user(plan, set(), low, full=full),
        LAST_STEP: _user(plan, {last}, high, full=full),
    }
    worlds = {
        f"{label}, user {place + 1}": _world(plan, usual, other, place, watch)
        for label, other in others.items()
        for place in range(watch)
    }
    note = f"{plan.feedback}{', centred' if centred else ''}"
    base = _world(plan, usual, usual, 0, watch)
    yield Path(NAME, "layered", base, worlds, releases=watch, note=note, blocks=True)


def _user(plan: LayeredMechanism, moved: set[int], loss: float, *, full: bool) -> LayeredUser:
    """Somebody who plays the first action, and the last one in the steps ``moved``."""
    size = plan.size
    horizon, width, _ = size.padded
    visits = np.zeros(size.padded)
    transitions = np.zeros((*size.padded, width))
    losses = np.zeros(size.padded)
    for h in range(horizon):
        action = size.actions - 1 if h in moved else 0
        visits[h, 0, action] = transitions[h, 0, action, 0] = 1
        if full:
            losses[h, : size.widths[h]] = loss
        else:
            losses[h, 0, action] = loss
    return LayeredUser(transitions, visits, losses)


def _world(
    plan: LayeredMechanism, usual: LayeredUser, other: LayeredUser, place: int, watch: int
) -> Callable[[Sampler], FloatArray]:
    users = [other if k == place else usual for k in range(watch)]
    return lambda sampler: published(plan, users, sampler)


def published(plan: LayeredMechanism, users: Sequence[LayeredUser], sampler: Sampler) -> FloatArray:
    """Counts and losses after each user; losses in units, summed in full information only."""
    noise = plan.open(sampler).block(len(users))
    counts = [np.cumsum([getattr(u, n) for u in users], axis=0) for n in ("transitions", "visits")]
    losses = np.array([np.rint(user.losses * LOSS_UNITS) for user in users])
    if plan.feedback == "full":
        losses = np.cumsum(losses, axis=0)
    seen = [counts[0] + noise[0], counts[1] + noise[1]]
    if not plan.public_losses:  # public ones are no secret and not what is protected
        seen.append(losses + LOSS_UNITS * noise[2])
    return np.concatenate([part.reshape(len(users), -1) for part in seen], axis=1).ravel()
