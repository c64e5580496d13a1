"""Every public way from users' data to what is published, as a function of the randomness alone.

A `Path` is one data set's run and the runs of its neighbours. What is audited knows nothing else.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.auditing.neighbours import (
    EVERYTHING,
    OFF_POLICY,
    Episode,
    everything,
    neighbours,
    opposites,
    total,
    vector,
)
from discreet.auditing.probes import PresetSampler, ScriptedSampler
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    ContinualMechanism,
    Encoder,
    NoiseBlock,
)
from discreet.privacy.sampling.samplers import Sampler
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.vectors import VectorMechanism

Mechanism = BatchMechanism | ContinualMechanism
Kind = Literal["batch", "continual", "stationary", "layered", "vector", "honest", "returning"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Run = Callable[[Sampler], FloatArray]
"""Everything published about one data set, as a function of the randomness."""
User = TypeVar("User")

RELEASE, SIMULATE, REPORTS = "release", "simulate", "release_reports"
EPISODES = "Trajectories.counts, release"
ADD, BLOCK = "add", "block"
_SHORT, _SHORT_VECTORS = 16, 6
"""Releases that are watched in detail."""
LONG = 256
"""Releases of a long run: mistakes that come late, or again and again, show."""
_POSITIONS = (0, 63, 200)


@dataclass(frozen=True, eq=False)
class Path:
    """One way through the library.

    Attributes:
        name: the public functions it goes through, such as ``add``.
        kind: of the mechanism.
        base: a data set.
        neighbours: data sets in which one user is another, by what is different.
        releases: how many releases a run publishes, one after the other.
        cells: values per release, first of all that is published (0: all of it is one release).
        note: what is special about the data set (its size, its length).
        simulated: draws stand for sums over users, so how many there are may follow the data.
        window: scalar draws to enumerate, if not all (first, last).
        blocks: noise is handed out ahead and added to true counts by the caller.
        thorough: short enough to be run hundreds of times.
        secure: the kinds of sampler to go through with.
    """

    name: str
    kind: Kind
    base: Run
    neighbours: Mapping[str, Run]
    releases: int = 1
    cells: int = 0
    note: str = ""
    simulated: bool = False
    window: tuple[int, int] | None = None
    blocks: bool = False
    thorough: bool = True
    secure: tuple[bool, ...] = field(default=(False, True))

    @property
    def label(self) -> str:
        return f"{self.name} ({self.note})" if self.note else self.name

    def only(self, *names: str) -> "Path":
        """The same path with some of its neighbours."""
        return replace(self, neighbours={n: r for n, r in self.neighbours.items() if n in names})


def short_paths(mechanism: Mechanism) -> Iterator[Path]:
    """All short paths of a mechanism of either schedule."""
    if isinstance(mechanism, BatchMechanism):
        yield from batch_paths(mechanism)
    else:
        yield from stream_paths(mechanism)


def main_path(mechanism: Mechanism, users: int = 1) -> Path:
    """Counts in, statistics out: `release` of a batch, `add` of continual ones."""
    if isinstance(mechanism, BatchMechanism):
        return batch_path(mechanism, RELEASE, users)
    if mechanism.response != "unit":
        raise UnsupportedError("This mechanism randomises the data instead of adding noise.")
    return stream_path(mechanism, ADD, mechanism.episodes)


# Batches: counts released, reports and messages encoded and analysed, users simulated.


def batch_paths(mechanism: BatchMechanism, users: int = 3) -> Iterator[Path]:
    """All ways through a batch, on everything that can be played and on one public policy."""
    # Local reports are private one by one, and listed one by one.
    crowd = 1 if mechanism.guarantee.notion == "LDP" else users
    takes = {RELEASE: mechanism.takes_counts, REPORTS: mechanism.takes_reports}
    for name in BATCH_WAYS:
        if takes.get(name, True):
            for size in dict.fromkeys((mechanism.min_users, crowd)):
                yield batch_path(mechanism, name, size)
                yield batch_path(mechanism, name, size, on_policy=True)


def batch_path(
    mechanism: BatchMechanism, name: str, users: int, *, on_policy: bool = False
) -> Path:
    """One user of ``users`` is replaced, in every respect.

    ``on_policy``: the public policy is what the usual user plays; who replaces her leaves it.
    """
    usual, other = opposites(mechanism.shape)
    support = usual.policy(mechanism.shape) if on_policy else None
    way = BATCH_WAYS[name]

    def world(first: Episode) -> Run:
        crowd = [first] + [usual] * (users - 1)
        return lambda sampler: way(mechanism, crowd, sampler, support)

    others = {OFF_POLICY: other} if on_policy else neighbours(mechanism.shape)
    return Path(
        name,
        "batch",
        world(usual),
        {label: world(user) for label, user in others.items()},
        note=f"{users:,} users" if users > 1 else "",
        simulated=name != REPORTS and mechanism.guarantee.notion == "LDP",
    )


def episodes_path(mechanism: BatchMechanism, users: int) -> Path:
    """From raw episodes to their release; the last of ``users`` is replaced."""
    usual, _ = opposites(mechanism.shape)

    def world(last: Episode) -> Run:
        pairs = (
            (getattr(usual, name), getattr(last, name)) for name in ("states", "actions", "rewards")
        )
        crowd = Trajectories(
            *(np.concatenate([np.tile(one, (users - 1, 1)), other[None]]) for one, other in pairs)
        )

        def run(sampler: Sampler) -> FloatArray:
            support = np.ones(mechanism.shape.visits, np.bool_)
            counts = crowd.counts(mechanism.shape, np.random.default_rng(0), support)
            return everything(mechanism.release(counts, sampler=sampler))

        return run

    others = {label: world(user) for label, user in neighbours(mechanism.shape).items()}
    note = f"{users:,} users"
    return Path(EPISODES, "batch", world(usual), others, note=note, thorough=False)


def honest_path(mechanism: BatchMechanism, honest: int, users: int) -> Path:
    """Encode, shuffle, analyse, when only ``honest`` of the users add their noise."""
    usual, other = opposites(mechanism.shape)

    def world(first: Episode) -> Run:
        crowd = [first] + [usual] * (users - 1)
        return lambda sampler: _reports(mechanism, crowd, sampler, None, honest)

    note = f"{honest} of {users} honest"
    return Path(REPORTS, "honest", world(usual), {EVERYTHING: world(other)}, note=note)


def returning_path(mechanism: Mechanism) -> Path:
    """One person takes part as often as the guarantee allows, and is another one every time.

    What is seen is all batches together, or one continual release.
    """
    usual, other = opposites(mechanism.shape)
    times = mechanism.guarantee.participations
    if isinstance(mechanism, BatchMechanism):
        name = RELEASE if mechanism.takes_counts else REPORTS
        crowd = [usual] * (max(2, mechanism.min_users) - 1)
        crowd = [] if mechanism.guarantee.notion == "LDP" else crowd
        way, several = BATCH_WAYS[name], mechanism

        def batches(person: Episode) -> Run:
            def run(sampler: Sampler) -> FloatArray:
                seen = [way(several, [person, *crowd], sampler, None) for _ in range(times)]
                return np.concatenate(seen)

            return run

        path = Path(name, "returning", batches(usual), {EVERYTHING: batches(other)})
        return replace(path, note=f"{times} batches", simulated=mechanism.guarantee.notion == "LDP")
    apart = getattr(mechanism, "separation", 1)
    places = range(0, times * apart, apart)
    path = _stream(mechanism, ADD, {}, places[-1] + 1 if apart == 1 else mechanism.episodes)
    users = [other if k in places else usual for k in range(path.releases)]
    run = functools.partial(WAYS[ADD], mechanism, users)
    return replace(path, kind="returning", neighbours={EVERYTHING: run}, note=f"{times} times")


def _release(
    mechanism: BatchMechanism,
    users: Sequence[Episode],
    sampler: Sampler,
    support: BoolArray | None,
) -> FloatArray:
    transitions, rewards = _totals(tuple(users), mechanism.shape)
    counts = Counts(len(users), transitions.copy(), rewards.copy())
    return everything(mechanism.release(counts, sampler=sampler, support=support))


@functools.lru_cache(maxsize=256)
def _totals(users: tuple[Episode, ...], shape: Shape) -> tuple[IntArray, IntArray]:
    counts = total(users, shape)
    return counts.transitions, counts.rewards


def _simulate(
    mechanism: BatchMechanism,
    users: Sequence[Episode],
    sampler: Sampler,
    support: BoolArray | None,
) -> FloatArray:
    """`simulate` asks for fresh users: it gets these, in order."""
    waiting = list(users)

    def draw(count: int) -> Counts:
        drawn, waiting[:] = waiting[:count], waiting[count:]
        return total(drawn, mechanism.shape)

    return everything(mechanism.simulate(draw, len(users), sampler=sampler, support=support))


def _reports(
    mechanism: BatchMechanism,
    users: Sequence[Episode],
    sampler: Sampler,
    support: BoolArray | None,
    honest: int | None = None,
) -> FloatArray:
    """Encode on the device, shuffle, analyse. Seen are reports (or, mixed, their sums) too."""
    encoder = mechanism.encoder(len(users), support=support)
    trusted = len(users) if honest is None else honest
    silent = PresetSampler.still()  # the randomness of a user who adds no noise
    sent = [
        encoder.encode(u.states, u.actions, u.rewards, sampler if i < trusted else silent)
        for i, u in enumerate(users)
    ]
    messages = np.concatenate(sent)
    if mechanism.guarantee.notion == "SDP":
        messages = messages[sampler.permutation(len(messages))]
        kinds = _histogram(messages, mechanism, encoder)
        seen = np.concatenate([[len(rows) for rows in sent], kinds])
    else:
        seen = messages.ravel()
    released = mechanism.release_reports(
        messages, len(users), secure=sampler.secure, support=support
    )
    return np.concatenate([seen, everything(released)]).astype(np.float64)


def _histogram(messages: IntArray, mechanism: BatchMechanism, encoder: Encoder) -> FloatArray:
    """What is left of messages after the shuffler: how many of each kind there are."""
    if hasattr(mechanism, "groups"):
        groups = cast(Any, encoder).device.groups
        seen = np.zeros((len(groups), max(one.cells for one in groups) + 1))
        np.add.at(seen, (messages[:, 0], messages[:, 1]), 1.0)
        return seen.ravel()
    counters = int(messages[:, 0].max()) + 1
    received = np.bincount(messages[:, 0], minlength=counters)
    ones = np.bincount(messages[:, 0], messages[:, 1].astype(np.float64), counters)
    return np.concatenate([received, ones])


BATCH_WAYS: dict[
    str, Callable[[BatchMechanism, Sequence[Episode], Sampler, BoolArray | None], FloatArray]
] = {RELEASE: _release, SIMULATE: _simulate, REPORTS: _reports}


# Continual releases: counts added, and blocks of randomness by the rule.


def sequences(
    way: Callable[[Sequence[User], Sampler], FloatArray],
    usual: User,
    others: Mapping[str, tuple[User, Iterable[int]]],
    length: int,
) -> tuple[Run, dict[str, Run]]:
    """A run of users who are all alike, and runs with another one in each of some places.

    Args:
        way: from users to what is published.
        usual: one user.
        others: those who may replace her, by what is different, and where.
        length: how many users.
    """

    def world(other: User, place: int) -> Run:
        users = [other if k == place else usual for k in range(length)]
        return lambda sampler: way(users, sampler)

    return world(usual, 0), {
        f"{label}, user {place + 1}": world(other, place)
        for label, (other, places) in others.items()
        for place in places
    }


def stream_paths(mechanism: ContinualMechanism) -> Iterator[Path]:
    """All ways through the first continual releases."""
    for name in WAYS:
        yield stream_path(mechanism, name)


def stream_path(mechanism: ContinualMechanism, name: str, watch: int = _SHORT) -> Path:
    """Any one of the users is replaced in everything; the last one in every other respect."""
    randomised = mechanism.response != "unit"
    watch = min(2 if randomised else watch, mechanism.episodes)
    others = {
        label: (other, range(watch) if label == EVERYTHING and not randomised else [watch - 1])
        for label, other in neighbours(mechanism.shape).items()
    }
    path = _stream(mechanism, name, others, watch)
    if mechanism.episodes == 1 or not randomised:
        return path
    window = _draws_of(mechanism, name, watch - 1)  # who draws when: known with secure noise only
    return replace(path, window=window, secure=(True,))


def long_path(mechanism: ContinualMechanism, name: str, *, secure: bool) -> Path:
    """More than 200 releases through the branch of one kind of sampler."""
    _, other = opposites(mechanism.shape)
    length = min(LONG, mechanism.episodes)
    randomised = mechanism.response != "unit"
    places = [length // 2] if randomised else [place for place in _POSITIONS if place < length]
    return replace(
        _stream(mechanism, name, {EVERYTHING: (other, places)}, length),
        note=f"{length} releases, {'secure' if secure else 'simulated'}",
        window=_draws_of(mechanism, name, places[0]) if randomised else None,
        thorough=False,
        secure=(secure,),
    )


def _stream(
    mechanism: ContinualMechanism,
    name: str,
    others: Mapping[str, tuple[Episode, Iterable[int]]],
    length: int,
) -> Path:
    usual, _ = opposites(mechanism.shape)
    base, worlds = sequences(functools.partial(WAYS[name], mechanism), usual, others, length)
    return Path(
        name,
        "stationary" if mechanism.stationary else "continual",
        base,
        worlds,
        releases=length,
        cells=mechanism.cells,
        blocks=name == BLOCK,
    )


def _draws_of(mechanism: ContinualMechanism, name: str, place: int) -> tuple[int, int]:
    """Which scalar draws are those of one user, when each draws at her own time."""
    usual, _ = opposites(mechanism.shape)
    drawn = []
    for length in (place, place + 1):
        sampler = ScriptedSampler([], secure=True, last=0)
        if length:
            WAYS[name](mechanism, [usual] * length, sampler)
        drawn.append(sampler.draws)
    return drawn[0], drawn[1]


def _add(mechanism: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    stream = mechanism.open(sampler)
    known = {user: user.counts(mechanism.shape) for user in dict.fromkeys(users)}
    return _published([stream.add(known[user]) for user in users])


def _published(releases: Sequence[PrivateCounts]) -> FloatArray:
    """All statistics, and what else is said with the first and with the last of them."""
    said = [everything(release)[vector(release).size :] for release in (releases[0], releases[-1])]
    return np.concatenate([*(vector(release) for release in releases), *said])


def _block(mechanism: ContinualMechanism, users: Sequence[Episode], sampler: Sampler) -> FloatArray:
    block = mechanism.open(sampler).block(len(users))
    return by_the_rule(block, mechanism, [_counts(user, mechanism.shape) for user in users]).ravel()


@functools.lru_cache(maxsize=256)
def _counts(user: Episode, shape: Shape) -> Counts:
    return user.counts(shape)


WAYS: dict[str, Callable[[ContinualMechanism, Sequence[Episode], Sampler], FloatArray]] = {
    ADD: _add,
    BLOCK: _block,
}


def by_the_rule(
    block: NoiseBlock, mechanism: ContinualMechanism, users: Sequence[Counts]
) -> FloatArray:
    """What is public after each user, ``[n, cells]``: the rule that `NoiseBlock` documents.

    Compiled learners follow the same rule in place; tests compare them with this one, bit by bit.
    """
    if mechanism.response == "unit":
        plain: FloatArray = block.noise + _cumulative(mechanism, tuple(users))
        return plain
    steps = [_step(block, mechanism, index, counts) for index, counts in enumerate(users)]
    public: FloatArray = block.scale * (block.noise + np.cumsum(steps, axis=0) - block.centres)
    return public


@functools.lru_cache(maxsize=64)
def _cumulative(mechanism: ContinualMechanism, users: tuple[Counts, ...]) -> FloatArray:
    """True cumulative counters, the same in every run."""
    known = {
        id(counts): _pooled(mechanism.flat(counts, stationary=False), mechanism) for counts in users
    }
    return np.cumsum([known[id(counts)] for counts in users], axis=0)


def _step(
    block: NoiseBlock, mechanism: ContinualMechanism, index: int, counts: Counts
) -> FloatArray:
    """What one user adds to the integers."""
    if mechanism.response != "category":
        units = mechanism.flat(counts, stationary=False)
        return _pooled(block.gains[index] * units, mechanism)
    # The gain of the user's category, at the one step that she reports.
    transitions, rewards = np.zeros_like(counts.transitions), np.zeros_like(counts.rewards)
    step, shape = int(block.steps[index]), mechanism.shape
    for state, action, after in np.argwhere(counts.transitions[step]):
        bit = int(counts.rewards[step, state, action])
        category = ((state * shape.actions + action) * shape.states + after) * 2 + bit
        gain = int(block.gains[index, category])
        transitions[step, state, action, after] = gain
        rewards[step, state, action] = bit * gain
    reported = Counts(1, transitions, rewards)
    return _pooled(mechanism.flat(reported, stationary=False), mechanism)


def _pooled(units: FloatArray | IntArray, mechanism: ContinualMechanism) -> FloatArray:
    """Per-step counters, summed over steps if the mechanism's are."""
    if not mechanism.stationary:
        return units.astype(np.float64)
    parts, start, shape = [], 0, mechanism.shape
    for name in mechanism.statistics:
        width = shape.states * shape.actions * (shape.states if name == "transitions" else 1)
        end = start + shape.horizon * width
        parts.append(units[start:end].reshape(shape.horizon, width).sum(axis=0))
        start = end
    return np.concatenate(parts).astype(np.float64)


# Named vectors, dense ones (a loss for everything) and sparse ones (what was seen).


def vector_paths(mechanism: VectorMechanism, watch: int = _SHORT_VECTORS) -> Iterator[Path]:
    """Both ways, with any one of the users replaced by one as far from her as can be."""
    watch = min(watch, mechanism.episodes)
    usual, others = furthest(mechanism)
    placed = {label: (other, range(watch)) for label, other in others.items()}
    moved = mechanism.sensitivity
    note = f"sensitivity {moved.units}" + (f", {moved.pile} in one cell" if moved.pile > 1 else "")

    def add(users: Sequence[IntArray], sampler: Sampler) -> FloatArray:
        run = mechanism.open(sampler)
        return np.concatenate([run.add(user) for user in users]) * mechanism.noise.unit

    def block(users: Sequence[IntArray], sampler: Sampler) -> FloatArray:
        noise = mechanism.open(sampler).block(len(users))  # the caller adds what is true
        public: FloatArray = (noise + np.cumsum(users, axis=0)).ravel()
        return public

    for name, way in ((ADD, add), (BLOCK, block)):
        base, worlds = sequences(way, usual, placed, watch)
        path = Path(name, "vector", base, worlds, releases=watch, cells=mechanism.cells, note=note)
        yield replace(path, blocks=name == BLOCK)


def furthest(mechanism: VectorMechanism) -> tuple[IntArray, dict[str, IntArray]]:
    """A user's vector, and others as far from it as the sensitivity allows, or almost as near.

    Where one user may fill everything the neighbours are full and empty; where half moves up and
    half down they fill different cells, one after the other.
    """
    cells, pile, units = mechanism.cells, mechanism.sensitivity.pile, mechanism.sensitivity.units
    empty = np.zeros(cells, np.int64)
    if pile * cells <= units:
        full = np.full(cells, pile)
        return full, {"everything": empty, "one cell only": np.append(full[:-1], 0)}
    first = np.clip(units // 2 - pile * np.arange(cells), 0, pile)
    return first, {"everything": first[::-1].copy(), "nothing": empty}
