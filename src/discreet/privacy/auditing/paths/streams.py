"""Streams: counts added, reports added, blocks of randomness by the documented rule, and a disk."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from discreet._types import FloatArray, IntArray
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.auditing.neighbours import (
    EVERYTHING,
    Episode,
    everything,
    neighbours,
    opposites,
    vector,
)
from discreet.privacy.auditing.paths.path import Kind, Path, Run
from discreet.privacy.auditing.probes import ScriptedSampler
from discreet.privacy.mechanisms import stored_tree
from discreet.privacy.plans import ContinualMechanism, ContinualReportMechanism, with_reports
from discreet.privacy.releases import StreamBlock
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts, flatten

ADD, ADD_REPORT, BLOCK, DISK = "add", "add_report", "block", "disk"
_SHORT = 16
"""Releases that are watched in detail."""
LONG = 256
"""Releases of a long stream: mistakes that come late, or again and again, show."""
_POSITIONS = (0, 63, 200)


def stream_paths(plan: ContinualMechanism, watch: int = _SHORT) -> Iterator[Path]:
    """All ways through a stream plan, its first ``watch`` releases."""
    for name in WAYS:
        if takes(plan, name):
            yield stream_path(plan, name, watch)


def takes(plan: ContinualMechanism, name: str) -> bool:
    """Whether a plan can be used in this way."""
    if name == DISK:
        return plan.mechanism in stored_tree.MECHANISMS
    return name != ADD_REPORT or isinstance(plan, ContinualReportMechanism)


def stream_path(plan: ContinualMechanism, name: str, watch: int = _SHORT) -> Path:
    """Any one of the users is replaced in everything; the last one in every other respect."""
    usual, _ = opposites(plan.shape)
    randomised = plan.response != "unit"
    watch = min(2 if randomised else watch, plan.episodes)
    worlds: dict[str, Run] = {}
    for label, other in neighbours(plan.shape).items():
        for place in range(watch) if label == EVERYTHING and not randomised else [watch - 1]:
            worlds[_at(label, place)] = _world(plan, name, usual, other, place, watch)
    path = _path(plan, name, worlds, watch)
    if plan.episodes == 1 or not randomised:
        return path
    window = _draws_of(plan, name, watch - 1)  # who draws when is known of secure streams only
    return replace(path, window=window, secure=(True,))


def long_path(plan: ContinualMechanism, name: str, *, secure: bool) -> Path:
    """A stream of more than 200 releases through the branch of one kind of sampler."""
    usual, other = opposites(plan.shape)
    length = min(LONG, plan.episodes)
    places = [place for place in _POSITIONS if place < length]
    randomised = plan.response != "unit"
    if randomised:
        places = [length // 2]
    worlds = {
        _at(EVERYTHING, place): _world(plan, name, usual, other, place, length) for place in places
    }
    return replace(
        _path(plan, name, worlds, length),
        note=f"{length} releases, {'secure' if secure else 'simulated'}",
        window=_draws_of(plan, name, places[0]) if randomised else None,
        thorough=False,
        secure=(secure,),
    )


def _path(plan: ContinualMechanism, name: str, worlds: dict[str, Run], length: int) -> Path:
    """The first ``length`` releases, next to those of users who are all alike."""
    usual, _ = opposites(plan.shape)
    return Path(
        name,
        _kind(plan),
        _world(plan, name, usual, usual, 0, length),
        worlds,
        releases=length,
        cells=plan.cells,
        blocks=name == BLOCK,
        ahead=name == DISK,
    )


def _at(label: str, place: int) -> str:
    return f"{label}, user {place + 1}"


def _kind(plan: ContinualMechanism) -> Kind:
    return "stationary" if plan.stationary else "continual"


def _world(
    plan: ContinualMechanism, name: str, usual: Episode, other: Episode, place: int, watch: int
) -> Run:
    users = [other if k == place else usual for k in range(watch)]
    way = WAYS[name]
    return lambda sampler: way(plan, users, sampler)


def _draws_of(plan: ContinualMechanism, name: str, place: int) -> tuple[int, int]:
    """Which scalar draws are those of one user, when each draws at her own time."""
    usual, _ = opposites(plan.shape)
    drawn = []
    for length in (place, place + 1):
        sampler = ScriptedSampler([], secure=True, last=0)
        if length:
            WAYS[name](plan, [usual] * length, sampler)
        drawn.append(sampler.draws)
    return drawn[0], drawn[1]


def _add(plan: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    stream = plan.open(sampler)
    known = {user: user.counts(plan.shape) for user in dict.fromkeys(users)}
    return _published([stream.add(known[user]) for user in users])


def _published(releases: Sequence[PrivateCounts]) -> FloatArray:
    """All statistics, and what else is said with the first and with the last of them."""
    said = [everything(release)[vector(release).size :] for release in (releases[0], releases[-1])]
    return np.concatenate([*(vector(release) for release in releases), *said])


def _add_report(plan: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    """Reports are seen by whoever adds them up."""
    devices = with_reports(plan)
    encoder, stream = devices.encoder(), devices.open(sampler)
    reports = []
    releases = []
    for user in users:
        reports.append(encoder.encode(user.states, user.actions, user.rewards, sampler))
        releases.append(stream.add_report(reports[-1]))
    return np.concatenate([_published(releases), *(report.ravel() for report in reports)])


def _block(plan: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    block = plan.open(sampler).block(len(users))
    return by_the_rule(block, plan, [_counts(user, plan.shape) for user in users]).ravel()


def _disk(plan: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    """A study on a disk, of which somebody has one copy, made half-way, and the key to it."""
    tree, releases = stored_tree.StoredTree(stored_tree.on_disk(plan), sampler), []
    copied = tree.open
    for place, user in enumerate(users):
        if place == len(users) // 2:
            copied = tree.open.copy()
        counts = _counts(user, plan.shape)
        tree.add(flatten(counts, plan.statistics, stationary=plan.stationary))
        releases.append(tree.release())
    return np.concatenate([*releases, copied.ravel()]).astype(np.float64)


@functools.lru_cache(maxsize=256)
def _counts(user: Episode, shape: Shape) -> Counts:
    return user.counts(shape)


WAYS: dict[str, Callable[[ContinualMechanism, Sequence[Episode], Sampler], FloatArray]] = {
    ADD: _add,
    ADD_REPORT: _add_report,
    BLOCK: _block,
    DISK: _disk,
}


def by_the_rule(
    block: StreamBlock, plan: ContinualMechanism, users: Sequence[Counts]
) -> FloatArray:
    """What is public after each user, ``[n, cells]``: the rule that `StreamBlock` documents.

    Compiled learners follow the same rule in place; tests compare them with this one, bit by bit.
    """
    if plan.response == "unit":
        plain: FloatArray = block.noise + _cumulative(plan, tuple(users))
        return plain
    steps = [_step(block, plan, index, counts) for index, counts in enumerate(users)]
    integers = block.noise + np.cumsum(steps, axis=0)
    public: FloatArray = block.scale * (integers - block.centres)
    return public


@functools.lru_cache(maxsize=64)
def _cumulative(plan: ContinualMechanism, users: tuple[Counts, ...]) -> FloatArray:
    """True cumulative counters, the same in every run."""
    known = {id(counts): _units(plan, counts) for counts in users}
    return np.cumsum([known[id(counts)] for counts in users], axis=0)


def _units(plan: ContinualMechanism, counts: Counts) -> FloatArray:
    return _pooled(flatten(counts, plan.statistics, stationary=False), plan)


def _step(block: StreamBlock, plan: ContinualMechanism, index: int, counts: Counts) -> FloatArray:
    """What one user adds to the integers."""
    if plan.response == "category":
        return _one_step(block, plan, index, counts)
    units = flatten(counts, plan.statistics, stationary=False)
    return _pooled(block.gains[index] * units, plan)


def _one_step(
    block: StreamBlock, plan: ContinualMechanism, index: int, counts: Counts
) -> FloatArray:
    """The gain of the user's category, at the one step that she reports."""
    moves, rewards = np.zeros_like(counts.transitions), np.zeros_like(counts.rewards)
    step, shape = int(block.steps[index]), plan.shape
    for state, action, after in np.argwhere(counts.transitions[step]):
        bit = int(counts.rewards[step, state, action])
        category = ((state * shape.actions + action) * shape.states + after) * 2 + bit
        gain = int(block.gains[index, category])
        moves[step, state, action, after] = gain
        rewards[step, state, action] = bit * gain
    return _pooled(flatten(Counts(1, moves, rewards), plan.statistics, stationary=False), plan)


def _pooled(units: FloatArray | IntArray, plan: ContinualMechanism) -> FloatArray:
    """Per-step counters, summed over steps if the plan's are."""
    if not plan.stationary:
        return units.astype(np.float64)
    parts, start = [], 0
    pairs = plan.shape.states * plan.shape.actions
    for name in plan.statistics:
        width = pairs * (plan.shape.states if name == "transitions" else 1)
        end = start + plan.shape.horizon * width
        parts.append(units[start:end].reshape(plan.shape.horizon, width).sum(axis=0))
        start = end
    return np.concatenate(parts).astype(np.float64)
