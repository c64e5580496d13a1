"""What one asks of a calibrated mechanism in tests of the audit: its main path, read or listed."""

from dataclasses import replace

import numpy as np

from discreet.auditing import additive as adding
from discreet.auditing import categories
from discreet.auditing.attack import watched
from discreet.auditing.examine import Outcomes
from discreet.auditing.neighbours import neighbours, opposites, total
from discreet.auditing.paths import (
    ADD,
    BLOCK,
    RELEASE,
    REPORTS,
    Path,
    batch_path,
    main_path,
    stream_path,
)
from discreet.errors import UnsupportedError
from discreet.privacy.mechanisms.base import BatchMechanism


def batch_of(episode, users, shape):
    """A batch of ``users``: this one, and others who all do what the first opposite does."""
    other, _ = opposites(shape)
    return total([episode] + [other] * (users - 1), shape)


def additive(mechanism, *, users=1):
    """The main path as ``o = d + B·z``."""
    return adding.probe(main_path(mechanism, users))


def bitwise(mechanism, *, users=1):
    """Whether data and noise can be traded on the main path without changing a single bit."""
    path = main_path(mechanism, users)
    return adding.trades(path, adding.probe(path))


def categorical(mechanism, users=1):
    """The main path as messages that are counted."""
    return categories.read(main_path(mechanism, users))


class Enumerated(Outcomes):
    """All reports of a few very different users, or the first release of a stream of them."""

    def __init__(self, mechanism):
        if not isinstance(mechanism, BatchMechanism):
            super().__init__(stream_path(replace(mechanism, episodes=1), ADD))
            return
        encoder = mechanism.encoder()

        def report(user):
            return lambda sampler: encoder.encode(
                user.states, user.actions, user.rewards, sampler
            ).astype(np.float64)

        usual, _ = opposites(mechanism.shape)
        others = {label: report(user) for label, user in neighbours(mechanism.shape).items()}
        super().__init__(Path("encode", "batch", report(usual), others))


def exact_view(mechanism, users=1):
    """The exact privacy of the main path, or of reports."""
    try:
        return additive(mechanism, users=users)
    except UnsupportedError as reason:
        if mechanism.guarantee.notion == "LDP":
            return Enumerated(mechanism)
        try:
            return categorical(mechanism, users)
        except UnsupportedError:
            raise reason from None


def target_path(mechanism, users=1):
    """The path that comes closest to what an attacker sees."""
    if isinstance(mechanism, BatchMechanism):
        central = mechanism.guarantee.notion in ("JDP", "none")
        return batch_path(mechanism, RELEASE if central else REPORTS, users)
    name = BLOCK if mechanism.response == "unit" else ADD
    return stream_path(mechanism, name, mechanism.episodes)


def samples(mechanism, sampler, runs, *, users=1):
    """What is seen of two neighbours on the path that an attacker would choose."""
    return watched(target_path(mechanism, users), sampler, runs)
