"""A running stream: used in one way, refused before anything changes, stamped with its noise."""

import json

import numpy as np
import pytest

from discreet import Central, Local, Shuffle
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import SimulationSampler, load_encoder
from helpers.sampling import sampler

SHAPE = Shape(states=2, actions=2, horizon=2)


def user(users=1):
    transitions, rewards = np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64)
    transitions[:, 0, 0, 0] = users
    return Counts(users, transitions, rewards)


def stream(trust=None, **options):
    mechanism = (trust or Central(1)).calibrate_stream(SHAPE, episodes=4, **options)
    return mechanism.open(sampler())


def test_a_block_of_additive_noise_has_nothing_else():
    block = stream().block(3)
    assert block.noise.shape == (3, stream().mechanism.cells)
    assert block.gains.size == block.steps.size == block.centres.size == 0
    assert block.scale == 1.0


def test_users_and_blocks_see_the_same_noise():
    one, other = stream(), stream()
    noise = one.block(4).noise
    for k in range(4):
        seen = other.add(user())
        parts = [seen.transitions, seen.visits, seen.rewards]
        flat = np.concatenate([part.ravel() for part in parts])
        raw = (k + 1) * user().visits
        assert np.array_equal(seen.visits - raw, noise[k][16:24].reshape(SHAPE.visits))
        assert flat.size == noise.shape[1]


@pytest.mark.parametrize(("first", "then"), [("add", "block"), ("block", "add")])
def test_a_stream_that_was_used_in_one_way_refuses_the_other(first, then):
    running = stream()
    use = {"add": lambda: running.add(user()), "block": lambda: running.block(1)}
    use[first]()
    with pytest.raises(UnsupportedError, match=f"through `{first}`; open another one"):
        use[then]()
    use[first]()
    assert running.episode == 2


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (lambda: user(2), "user"),
        (lambda: Counts.zeros(Shape(3, 2, 2)), "shape|Expected"),
    ],
)
def test_what_is_no_single_user_is_refused_and_not_counted(counts, said):
    running = stream()
    with pytest.raises(InvalidInputError, match=said):
        running.add(counts())
    assert running.episode == 0


def test_releases_are_stamped_as_simulated_and_counted():
    running = stream()
    released = [running.add(user()) for _ in range(3)]
    assert [r.users for r in released] == [1, 2, 3]
    assert all(r.guarantee.simulated for r in released)


def test_streams_take_counts_and_no_reports():
    for running in (stream(), stream(Local(1, mechanism="laplace"))):
        assert not running.mechanism.takes_reports
        with pytest.raises(UnsupportedError, match="use a batch under Local or Shuffle"):
            running.mechanism.encoder()


# --- encoders travel as JSON and come back the same

EPISODE = (np.array([0, 1, 1]), np.array([1, 0]), np.array([0.2, 1.0]))


@pytest.mark.parametrize(
    "trust",
    [
        Shuffle(epsilon=2, delta=1e-3),
        Local(epsilon=2),
    ],
    ids=lambda t: f"{type(t).__name__}-{t.mechanism}",
)
class TestEveryEncoder:
    def test_a_copy_from_json_sends_the_same_report(self, trust):
        encoder = trust.calibrate(SHAPE).encoder(20)
        copy = load_encoder(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
        one, two = (
            e.encode(*EPISODE, SimulationSampler(np.random.default_rng(7))) for e in (encoder, copy)
        )
        assert np.array_equal(one, two)
        assert copy.traffic == encoder.traffic

    def test_reports_of_a_batch_are_released(self, trust):
        mechanism = trust.calibrate(SHAPE)
        encoder = mechanism.encoder(20)
        sampler = SimulationSampler(np.random.default_rng(0))
        reports = np.concatenate([encoder.encode(*EPISODE, sampler) for _ in range(20)])
        private = mechanism.release_reports(reports, 20, secure=False)
        assert private.users == 20
        assert private.visits.shape == SHAPE.visits
        assert private.guarantee.simulated

    def test_reports_are_unbiased(self, trust):
        """The mean over batches of a counter that every user touches."""
        mechanism = trust.calibrate(SHAPE)
        encoder = mechanism.encoder(20)
        sampler = SimulationSampler(np.random.default_rng(1))
        estimates = []
        for _ in range(60):
            reports = np.concatenate([encoder.encode(*EPISODE, sampler) for _ in range(20)])
            estimates.append(mechanism.release_reports(reports, 20, secure=False).visits[0, 0, 1])
        error = np.std(estimates) / np.sqrt(len(estimates))
        assert abs(np.mean(estimates) - 20) < 7 * error


def test_an_unknown_encoder_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'split'"):
        load_encoder({"encoder": "splitt"})


@pytest.mark.parametrize(
    ("users", "visits", "earned", "rule"),
    [
        (1, 2, 0, "a user was counted twice"),
        (1, 1, 2, "Scale rewards"),
        (3, 4, 0, "at most 3 transitions per step"),
        (1, -1, 0, "below zero"),
        (2, 1, -1, "below zero"),
    ],
)
def test_counts_beyond_their_sensitivity_are_refused(users, visits, earned, rule):
    """One user more, or one reward more, than the noise was calibrated for."""
    transitions = np.zeros(SHAPE.transitions, np.int64)
    rewards = np.zeros(SHAPE.visits, np.int64)
    transitions[0, 0, 0, 0], rewards[0, 0, 0] = visits, earned
    mechanism = Central(epsilon=1).calibrate(SHAPE)
    with pytest.raises(InvalidInputError, match=rule):
        mechanism.release(
            Counts(users, transitions, rewards),
            sampler=SimulationSampler(np.random.default_rng(0)),
        )
