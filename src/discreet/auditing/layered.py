"""Layered releases for the audit: noise on counts and losses, added as documented."""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from discreet._types import FloatArray
from discreet.adversarial.mechanism import (
    Feedback,
    LayeredMechanism,
    LayeredSize,
    calibrate_layered,
)
from discreet.adversarial.noise import LOSS_UNITS
from discreet.adversarial.world import LayeredCounters, no_layered_counts
from discreet.auditing.cases import Audited, Case
from discreet.auditing.neighbours import EVERYTHING, LAST_STEP
from discreet.auditing.paths import Path, sequences
from discreet.privacy.sampling.samplers import Sampler

NAME = "LayeredNoise.block"
_WATCH = 4


def layered_cases(chosen: Sequence[Audited]) -> Iterator[Case]:
    """Two layers of one state and two actions, for every mechanism that serves losses.

    Full information, bandit feedback and, where it makes a difference, centred bandit losses.
    """
    for entry in chosen:
        if not (entry.adds_noise and entry.spec.losses):
            continue
        forms: list[tuple[Feedback, bool]] = [("full", False), ("bandit", False)]
        for feedback, centred in forms + [("bandit", True)] * entry.sizes.centred_losses:
            mechanism = calibrate_layered(
                entry.model,
                LayeredSize(widths=(1, 1, 1), actions=2),
                _WATCH,
                feedback=feedback,
                centred_losses=centred,
            )
            path = layered_path(mechanism, centred=centred)
            yield Case.of(entry, mechanism.guarantee.notion, path)


def layered_path(
    mechanism: LayeredMechanism, watch: int = _WATCH, *, centred: bool = False
) -> Path:
    """Any one of the users is replaced: in everything, in the losses only, in the last step only.

    ``centred``: bandit users hand over l - 1/2 on the pairs they visited.
    """
    watch = min(watch, mechanism.episodes)
    full = mechanism.feedback == "full"
    low, high = (-0.5, 0.5) if centred else (0.0, 1.0)
    steps = set(range(mechanism.size.horizon))
    user = functools.partial(layered_user, mechanism)
    others = {
        EVERYTHING: (user(steps, low if full else high), range(watch)),
        "losses only": (user(set(), low), range(watch)),
        LAST_STEP: (user({max(steps)}, high), range(watch)),
    }
    way = functools.partial(published, mechanism)
    base, worlds = sequences(way, user(set(), high), others, watch)
    note = f"{mechanism.feedback}{', centred' if centred else ''}"
    return Path(NAME, "layered", base, worlds, releases=watch, note=note, blocks=True)


def layered_user(mechanism: LayeredMechanism, moved: set[int], loss: float) -> LayeredCounters:
    """Somebody who plays the first action, and the last one in the steps ``moved``."""
    size = mechanism.size
    user = no_layered_counts((*size.padded, size.padded[1]))
    for h in range(size.horizon):
        action = size.actions - 1 if h in moved else 0
        user.visits[h, 0, action] = user.transitions[h, 0, action, 0] = 1
        if mechanism.feedback == "full":
            user.losses[h, : size.widths[h]] = loss
        else:
            user.losses[h, 0, action] = loss
    return user


def published(
    mechanism: LayeredMechanism, users: Sequence[LayeredCounters], sampler: Sampler
) -> FloatArray:
    """Counts and losses after each user; losses in units, summed in full information only."""
    noise = mechanism.open(sampler).block(len(users))
    counts = [np.cumsum([getattr(u, n) for u in users], axis=0) for n in ("transitions", "visits")]
    losses = np.array([np.rint(user.losses * LOSS_UNITS) for user in users])
    if mechanism.feedback == "full":
        losses = np.cumsum(losses, axis=0)
    seen = [counts[0] + noise[0], counts[1] + noise[1]]
    if not mechanism.public_losses:  # public ones are no secret and not what is protected
        seen.append(losses + LOSS_UNITS * noise[2])
    return np.concatenate([part.reshape(len(users), -1) for part in seen], axis=1).ravel()
