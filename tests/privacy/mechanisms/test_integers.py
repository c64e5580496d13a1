"""Integers end to end: outputs are one function of released integers, down to the last bit.

The tests trade data against randomness: a user who visited a counter and draws one thing, and a
user who did not and draws another, release the same integers. Their outputs must be equal bit for
bit, or the low-order bits tell who visited.
"""

import numpy as np
import pytest

from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, NoPrivacy, Shuffle, SimulationSampler
from discreet.privacy.mechanisms.base import batch_release
from discreet.privacy.sensitivity import STATISTICS, Sensitivity
from discreet.privacy.statistics import Debias, check_support, debias
from discreet.privacy.vectors import calibrate_vectors

HORIZONS = range(1, 21)
EPSILONS = (0.1, 0.2, 0.5, 1, 2, 3, 5, 8, 10, 20)
LOCAL = ("laplace", "gaussian", "randomized-response", "bounded", "one-step")
CENTRAL = ("toeplitz", "tree-signed", "tree-laplace")
GRID = 2.0**16
"""The finest grid that any stream releases on."""


class Bits:
    """A sampler whose bits are prescribed: draw after draw, row by row."""

    secure = False

    def __init__(self, *rows):
        self._rows = iter(rows)

    def binomial(self, trials, probability, size):
        return np.broadcast_to(np.asarray(next(self._rows), np.int64), size).copy()

    def table(self, weights, size):
        return np.full(size, next(self._rows), np.int64)


def user_of(shape, action, reward=1):
    """The counts of a user of one state who always plays ``action`` and earns ``reward``."""
    moves, rewards = np.zeros(shape.transitions, np.int64), np.zeros(shape.visits, np.int64)
    moves[:, 0, action, 0] = 1
    rewards[:, 0, action] = reward
    return Counts(1, moves, rewards)


def random_user(shape, rng):
    states = rng.integers(shape.states, size=shape.horizon + 1)
    moves, rewards = np.zeros(shape.transitions, np.int64), np.zeros(shape.visits, np.int64)
    for h, action in enumerate(rng.integers(shape.actions, size=shape.horizon)):
        moves[h, states[h], action, states[h + 1]] = 1
        rewards[h, states[h], action] = rng.integers(2)
    return Counts(1, moves, rewards)


def values_of(private):
    parts = [getattr(private, name) for name in STATISTICS]
    return np.concatenate([part.ravel() for part in parts if part is not None])


def stream(trust, shape, *, episodes, stationary=False):
    return trust.calibrate_stream(shape, episodes=episodes, stationary=stationary)


def streams(trust, episodes, stationary):
    """Of every horizon, with two actions in one state."""
    for horizon in HORIZONS:
        shape = Shape(states=1, actions=2, horizon=horizon)
        yield shape, stream(trust, shape, episodes=episodes, stationary=stationary)


def outputs(release, users):
    """All values after each user, through `add`."""
    return np.array([values_of(release.add(user)) for user in users])


@pytest.mark.core
@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_flipped_and_unflipped_reports_agree_bit_for_bit(epsilon, stationary):
    """An action's bits unflipped are the other action's bits flipped, for every H and epsilon."""
    trust = Local(epsilon, mechanism="randomized-response")
    for shape, mechanism in streams(trust, episodes=3, stationary=stationary):
        one = outputs(mechanism.open(Bits(0, 1, 0)), [user_of(shape, a) for a in (0, 1, 1)])
        other = outputs(mechanism.open(Bits(1, 0, 1)), [user_of(shape, a) for a in (1, 0, 0)])
        assert np.array_equal(one, other)


@pytest.mark.core
@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_step_reports_agree_bit_for_bit(epsilon, stationary):
    """Reports of nothing but ones, or of nothing but zeros, whatever the user did."""
    for shape, mechanism in streams(Local(epsilon, mechanism="one-step"), 2, stationary):
        last = shape.horizon - 1
        for bit in (0, 1):
            draws = (last, bit, bit, 0, 1 - bit, 1 - bit)  # step, false bits, kept; two users
            usual = [user_of(shape, 0), user_of(shape, 0)]
            for user in (user_of(shape, 1), user_of(shape, 0, reward=0)):
                one = outputs(mechanism.open(Bits(*draws)), usual)
                other = outputs(mechanism.open(Bits(*draws)), [user, user])
                assert np.array_equal(one, other)


class Flips(SimulationSampler):
    """Hands out prescribed flips, as many users at a time as the stream asks for."""

    def __init__(self, flips):
        super().__init__(np.random.default_rng(0))
        self._flips, self._given = flips, 0

    def binomial(self, trials, probability, size):
        self._given += size[0]
        return self._flips[self._given - size[0] : self._given]


@pytest.mark.parametrize("stationary", [False, True])
def test_a_long_stream_depends_on_answers_alone(stationary):
    """300 users: any data, with the flips that give the same answers, release the same bits."""
    shape, rng = Shape(states=2, actions=2, horizon=3), np.random.default_rng(0)
    trust = Local(1, mechanism="randomized-response")
    mechanism = stream(trust, shape, episodes=300, stationary=stationary)
    one, other = ([random_user(shape, rng) for _ in range(300)] for _ in range(2))
    bits, other_bits = (np.array([values_of(user) for user in users]) for users in (one, other))
    assert (bits != other_bits).any()
    flips = rng.integers(2, size=bits.shape)
    first = outputs(mechanism.open(Flips(flips)), one)
    second = outputs(mechanism.open(Flips(flips ^ bits ^ other_bits)), other)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(
    "trust",
    [Local(1, 1e-2 if name in ("gaussian", "bounded") else 0, mechanism=name) for name in LOCAL]
    + [Central(1, 1e-6, mechanism=name) for name in CENTRAL]
    + [NoPrivacy()],
    ids=str,
)
def test_streams_release_multiples_of_a_grid(trust, stationary):
    """Through `add` and in blocks: undo the debiasing and nothing is left below the grid."""
    shape, rng = Shape(states=2, actions=2, horizon=3), np.random.default_rng(1)
    mechanism = stream(trust, shape, episodes=30, stationary=stationary)
    block = mechanism.open(SimulationSampler(np.random.default_rng(2))).block(30)
    for integers in (block.noise * GRID, block.gains):
        assert np.array_equal(integers, np.rint(integers))
    users = [random_user(shape, rng) for _ in range(30)]
    released = outputs(mechanism.open(SimulationSampler(np.random.default_rng(2))), users)
    if block.centres.size:
        integers = released / block.scale + block.centres
        assert np.abs(integers - np.rint(integers)).max() < 1e-9
        assert np.array_equal(block.scale * (np.rint(integers) - block.centres), released)
    else:
        assert np.array_equal(released * GRID, np.rint(released * GRID))


@pytest.mark.parametrize("name", CENTRAL)
def test_vector_streams_release_multiples_of_a_grid(name):
    mechanism = calibrate_vectors(
        Central(1, 1e-6, mechanism=name), {"losses": 4}, Sensitivity(units=4), episodes=20
    )
    release = mechanism.open(SimulationSampler(np.random.default_rng(3)))
    for _ in range(20):
        values = release.add(np.array([1, 0, 1, 1])) * mechanism.noise.unit
        assert np.array_equal(values * GRID, np.rint(values * GRID))


@pytest.mark.core
@pytest.mark.parametrize(
    "trust",
    [
        Shuffle(1, 1e-6, mechanism="bits"),
        Local(1, mechanism="split"),
    ],
    ids=str,
)
def test_batches_are_a_function_of_integers(trust):
    """One more unit of data is the same as one more unit of noise, to the last bit."""
    shape = Shape(states=2, actions=2, horizon=3)
    mechanism = trust.calibrate(shape)
    users, support = 1000, check_support(None, shape)
    rng = np.random.default_rng(4)
    if mechanism.name == "split":
        reports = [
            mechanism.encoder(1).encode(*episode, SimulationSampler(rng))
            for episode in (random_episode(shape, rng) for _ in range(8))
        ]
        stacked = np.concatenate(reports)
        one, other = (mechanism.release_reports(rows, 8) for rows in (stacked, stacked[::-1]))
    else:
        counts = sum_of([random_user(shape, rng) for _ in range(users)])
        draws = [rng.integers(0, 50, size) for size in (24, 12, 12)]
        raw = [getattr(counts, f"row_{name}").ravel() for name in STATISTICS]
        one = mechanism.release(counts, sampler=Sums(draws), support=support)
        moved = sum_of([random_user(shape, rng) for _ in range(users)])
        others = [getattr(moved, f"row_{name}").ravel() for name in STATISTICS]
        traded = [d + a - b for d, a, b in zip(draws, raw, others, strict=True)]
        other = mechanism.release(moved, sampler=Sums(traded), support=support)
    assert np.array_equal(values_of(one), values_of(other))


class Sums:
    """Answers so that the noise on each statistic is the prescribed one, mechanism by mechanism."""

    secure = False

    def __init__(self, noise):
        self._answers = iter(noise)

    def binomial(self, trials, probability, size):
        return next(self._answers).reshape(size)


def sum_of(users):
    total = users[0]
    for user in users[1:]:
        total = total + user
    return total


def random_episode(shape, rng):
    states = rng.integers(shape.states, size=shape.horizon + 1)
    actions = rng.integers(shape.actions, size=shape.horizon)
    return states, actions, rng.integers(2, size=shape.horizon).astype(float)


@pytest.mark.core
def test_floats_are_refused_as_released_state():
    with pytest.raises(InvalidInputError, match="released integers"):
        debias(np.array([0.5]), 1.0, 0.0)
    shape = Shape(states=1, actions=1, horizon=1)
    mechanism = Central(1).calibrate(shape, statistics=("visits",))
    with pytest.raises(InvalidInputError, match="Nothing was released"):
        batch_release(
            mechanism, {"visits": np.ones(1)}, 1, check_support(None, shape), secure=False
        )
    assert Debias(2.0, {"visits": 0.5})("visits", np.array([1, 2])).tolist() == [1.0, 3.0]
    assert Debias(2.0, {"visits": 0.5})("rewards", np.array([1])).tolist() == [2.0]


@pytest.mark.core
@pytest.mark.parametrize("name", ["laplace", "one-step", "randomized-response"])
def test_a_stream_is_used_in_one_way(name):
    """Raw counts added before a block would be published without their noise."""
    shape, rng = Shape(states=1, actions=2, horizon=2), np.random.default_rng(5)
    mechanism = stream(Local(1, mechanism=name), shape, episodes=9)
    ways = {
        "add": lambda release: release.add(user_of(shape, 0)),
        "block": lambda release: release.block(1),
    }
    for first, use in ways.items():
        for second, use_again in ways.items():
            release = mechanism.open(SimulationSampler(rng))
            use(release)
            if first == second:
                use_again(release)
            else:
                with pytest.raises(UnsupportedError, match=f"through `{first}`"):
                    use_again(release)
