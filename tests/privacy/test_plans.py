"""What is released and what is refused; encoders travel as JSON and come back the same."""

import json

import numpy as np
import pytest

from discreet import Central, Local, Shuffle
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy import SimulationSampler, load_encoder

SHAPE = Shape(states=2, actions=2, horizon=2)
EPISODE = (np.array([0, 1, 1]), np.array([1, 0]), np.array([0.2, 1.0]))


@pytest.mark.parametrize(
    "trust",
    [
        Shuffle(epsilon=2, delta=1e-3),
        Local(epsilon=2),
        Local(epsilon=2, mechanism="laplace"),
        Local(epsilon=2, delta=1e-3, mechanism="gaussian"),
        Local(epsilon=2, mechanism="randomized-response"),
        Local(epsilon=2, delta=1e-3, mechanism="bounded"),
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
    with pytest.raises(UnknownNameError, match="did you mean 'one-step'"):
        load_encoder({"encoder": "one_step"})


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
