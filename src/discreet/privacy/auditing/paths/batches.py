"""Batches: counts released, reports and messages encoded and analysed, users simulated."""

import functools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.auditing.neighbours import (
    ALTERNATING,
    EVERYTHING,
    OFF_POLICY,
    Episode,
    alternating,
    everything,
    neighbours,
    opposites,
    total,
)
from discreet.privacy.auditing.paths.path import Kind, Path
from discreet.privacy.auditing.probes import PresetSampler
from discreet.privacy.mechanisms._devices import HistogramEncoder
from discreet.privacy.mechanisms.shuffle import shuffle
from discreet.privacy.plans import (
    BatchMechanism,
    CountsMechanism,
    Encoder,
    ReportMechanism,
    with_counts,
    with_reports,
)
from discreet.privacy.sampling.samplers import Sampler

_Way = Callable[[BatchMechanism, Sequence[Episode], Sampler, BoolArray | None], FloatArray]


def batch_paths(plan: BatchMechanism, users: int = 3) -> Iterator[Path]:
    """All ways through a batch plan, on everything that can be played and on one public policy."""
    # Local reports are private one by one, and listed one by one.
    crowd = 1 if plan.guarantee.notion == "LDP" else users
    for name in WAYS:
        if not _has(plan, name):
            continue
        for size in dict.fromkeys((plan.min_users, crowd)):
            yield batch_path(plan, name, size)
            yield policy_path(plan, name, size)


def _has(plan: BatchMechanism, name: str) -> bool:
    """Counts and reports are capabilities of a plan; everything can be simulated."""
    takes = {RELEASE: isinstance(plan, CountsMechanism), REPORTS: isinstance(plan, ReportMechanism)}
    return takes.get(name, True)


def batch_path(plan: BatchMechanism, name: str, users: int, *, kind: Kind = "batch") -> Path:
    """One user of ``users`` is replaced, in every respect."""
    usual, _ = opposites(plan.shape)
    return _path(plan, name, users, usual, _others(plan), support=None, kind=kind)


def _others(plan: BatchMechanism) -> dict[str, Episode]:
    others = neighbours(plan.shape)
    if plan.centred:
        others[ALTERNATING] = alternating(plan.shape)
    return others


def policy_path(plan: BatchMechanism, name: str, users: int) -> Path:
    """The public policy is what the usual user plays; the one who replaces her leaves it."""
    usual, other = opposites(plan.shape)
    support = usual.policy(plan.shape)
    return _path(plan, name, users, usual, {OFF_POLICY: other}, support=support, kind="batch")


def episodes_path(plan: BatchMechanism, users: int) -> Path:
    """From raw episodes to their release; the last of ``users`` is replaced."""
    usual, _ = opposites(plan.shape)

    def world(last: Episode) -> Callable[[Sampler], FloatArray]:
        crowd = Trajectories(
            *(
                np.concatenate([np.tile(one, (users - 1, 1)), other[None]])
                for one, other in zip(_arrays(usual), _arrays(last), strict=True)
            )
        )

        def run(sampler: Sampler) -> FloatArray:
            support = np.ones(plan.shape.visits, np.bool_)
            counts = crowd.counts(plan.shape, np.random.default_rng(0), support)
            return everything(with_counts(plan).release(counts, sampler=sampler))

        return run

    return Path(
        EPISODES,
        "batch",
        world(usual),
        {label: world(user) for label, user in _others(plan).items()},
        note=f"{users:,} users",
        thorough=False,
    )


def _arrays(user: Episode) -> tuple[IntArray, IntArray, FloatArray]:
    return user.states, user.actions, user.rewards


def honest_path(plan: BatchMechanism, honest: int, users: int) -> Path:
    """Encode, shuffle, analyse, when only ``honest`` of the users add their noise."""
    usual, other = opposites(plan.shape)

    def world(first: Episode) -> Callable[[Sampler], FloatArray]:
        def run(sampler: Sampler) -> FloatArray:
            return _reports(plan, [first] + [usual] * (users - 1), sampler, None, honest)

        return run

    note = f"{honest} of {users} honest"
    return Path(REPORTS, "honest", world(usual), {EVERYTHING: world(other)}, note=note)


def _path(
    plan: BatchMechanism,
    name: str,
    users: int,
    usual: Episode,
    others: dict[str, Episode],
    *,
    support: BoolArray | None,
    kind: Kind,
) -> Path:
    way = WAYS[name]

    def world(first: Episode) -> Callable[[Sampler], FloatArray]:
        crowd = [first] + [usual] * (users - 1)
        return lambda sampler: way(plan, crowd, sampler, support)

    return Path(
        name,
        kind,
        world(usual),
        {label: world(user) for label, user in others.items()},
        note=f"{users:,} users" if users > 1 else "",
        simulated=name != REPORTS and plan.guarantee.notion == "LDP",
    )


def _release(
    plan: BatchMechanism, users: Sequence[Episode], sampler: Sampler, support: BoolArray | None
) -> FloatArray:
    moves, rewards = _totals(tuple(users), plan.shape)
    counts = Counts(len(users), moves.copy(), rewards.copy())
    return everything(with_counts(plan).release(counts, sampler=sampler, support=support))


@functools.lru_cache(maxsize=256)
def _totals(users: tuple[Episode, ...], shape: Shape) -> tuple[IntArray, IntArray]:
    counts = total(users, shape)
    return counts.transitions, counts.rewards


def _simulate(
    plan: BatchMechanism, users: Sequence[Episode], sampler: Sampler, support: BoolArray | None
) -> FloatArray:
    """`simulate` asks for fresh users: it gets these, in order."""
    waiting = list(users)

    def draw(count: int) -> Counts:
        drawn, waiting[:] = waiting[:count], waiting[count:]
        return total(drawn, plan.shape)

    return everything(plan.simulate(draw, len(users), sampler=sampler, support=support))


def _reports(
    plan: BatchMechanism,
    users: Sequence[Episode],
    sampler: Sampler,
    support: BoolArray | None,
    honest: int | None = None,
) -> FloatArray:
    """Encode on the device, shuffle, analyse. Seen are reports (or, mixed, their sums) too."""
    devices = with_reports(plan)
    encoder = devices.encoder(len(users), support=support)
    trusted = len(users) if honest is None else honest
    sent = [
        encoder.encode(u.states, u.actions, u.rewards, sampler if i < trusted else _SILENT)
        for i, u in enumerate(users)
    ]
    messages = np.concatenate(sent)
    if plan.guarantee.notion == "SDP":
        messages = shuffle(messages, sampler)
        seen = np.concatenate([[len(rows) for rows in sent], _histogram(messages, encoder)])
    else:
        seen = messages.ravel()
    released = devices.release_reports(messages, len(users), secure=sampler.secure, support=support)
    return np.concatenate([seen, everything(released)]).astype(np.float64)


_SILENT = PresetSampler.still()
"""The randomness of a user who adds no noise."""


def _histogram(messages: IntArray, encoder: Encoder | None = None) -> FloatArray:
    """What is left of messages after the shuffler: how many of each kind there are."""
    if isinstance(encoder, HistogramEncoder):
        classes = encoder.device.groups
        seen = np.zeros((len(classes), max(one.cells for one in classes) + 1))
        np.add.at(seen, (messages[:, 0], messages[:, 1]), 1.0)
        return seen.ravel()
    counters = int(messages[:, 0].max()) + 1
    received = np.bincount(messages[:, 0], minlength=counters)
    ones = np.bincount(messages[:, 0], messages[:, 1].astype(np.float64), counters)
    return np.concatenate([received, ones])


RELEASE, SIMULATE, REPORTS = "release", "simulate", "release_reports"
EPISODES = "Trajectories.counts, release"
WAYS: dict[str, _Way] = {RELEASE: _release, SIMULATE: _simulate, REPORTS: _reports}
