"""Central one-shot releases and the non-private twin."""

import math

import numpy as np
import pytest

from discreet import Central, NoPrivacy, Shuffle
from discreet.auditing.conformance import check_mechanism
from discreet.auditing.run import audit
from discreet.errors import (
    CalibrationError,
    InvalidInputError,
    UnknownNameError,
    UnsupportedError,
)
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.lattice import discrete_gaussian_delta
from discreet.privacy.sampling.samplers import SecureSampler
from helpers.sampling import sampler

SHAPE = Shape(states=3, actions=2, horizon=2)


def counts(users=50, seed=0):
    rng = np.random.default_rng(seed)
    transitions = np.zeros(SHAPE.transitions, np.int64)
    for h in range(2):
        transitions[h] = rng.multinomial(users, np.full(18, 1 / 18)).reshape(3, 2, 3)
    return Counts(users, transitions, rng.binomial(transitions.sum(-1), 0.5))


@pytest.mark.core
@pytest.mark.parametrize(
    ("horizon", "epsilon", "std"), [(2, 0.1, 169.7), (2, 1, 17.0), (6, 1, 50.9), (20, 1, 170)]
)
def test_golden_laplace(horizon, epsilon, std):
    mechanism = Central(epsilon=epsilon).calibrate(Shape(states=4, actions=2, horizon=horizon))
    assert mechanism.name == "laplace"
    assert mechanism.guarantee.delta == 0
    assert math.sqrt(mechanism.noise_variance(7)["visits"]) == pytest.approx(std, rel=0.01)


def test_golden_gaussian():
    mechanism = Central(epsilon=1, delta=1e-6).calibrate(Shape(states=4, actions=2, horizon=6))
    assert mechanism.name == "gaussian"
    assert math.sqrt(mechanism.noise_variance(7)["visits"]) == pytest.approx(25.35, rel=0.01)
    assert str(mechanism.guarantee).startswith(
        "(1, 1e-06)-JDP, one user's whole episode, replace-one"
    )


@pytest.mark.parametrize("trust", [Central(epsilon=1), Central(epsilon=1, delta=1e-3)])
def test_noise_has_the_stated_variance_and_cells_are_independent(trust):
    mechanism = trust.calibrate(SHAPE)
    raw = counts()
    noise = np.array(
        [
            np.concatenate(
                [
                    (released.transitions - raw.transitions).ravel(),
                    (released.visits - raw.visits).ravel(),
                    (released.rewards - raw.rewards).ravel(),
                ]
            )
            for released in (mechanism.release(raw, sampler=sampler(i)) for i in range(2000))
        ]
    )
    assert (noise == np.rint(noise)).all()
    variance = mechanism.noise_variance(50)["visits"]
    assert noise.var() == pytest.approx(variance, rel=0.05)
    together = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    assert np.abs(together).max() < 6.5 / math.sqrt(len(noise))


def test_counters_that_cannot_be_played_are_exactly_zero():
    support = np.zeros(SHAPE.visits, bool)
    support[:, :, 1] = True
    raw = counts()
    raw.transitions[:, :, 0] = 0
    raw.rewards[:, :, 0] = 0
    for trust in (Central(epsilon=0.1), Central(epsilon=0.1, delta=1e-6), NoPrivacy()):
        released = trust.calibrate(SHAPE).release(raw, sampler=sampler(), support=support)
        assert not released.visits[~support].any()
        assert not released.rewards[~support].any()
        assert not released.transitions[~support].any()
        assert (released.visits != 0)[support].any()


def test_statistics_that_are_not_released_are_none():
    mechanism = Central(epsilon=1, delta=1e-6).calibrate(
        SHAPE, statistics=("transitions", "visits")
    )
    released = mechanism.release(counts(), sampler=sampler())
    assert released.rewards is None
    assert set(released.noise_variance) == {"transitions", "visits"}


def test_no_privacy_is_exact_and_says_so():
    raw = counts()
    released = NoPrivacy().calibrate(SHAPE).release(raw, sampler=sampler())
    assert (released.transitions == raw.transitions).all()
    assert str(released.guarantee) == "no privacy"
    assert released.guarantee.to_dict()["epsilon"] is None


def test_exact_stream_accumulates():
    mechanism = NoPrivacy().calibrate_stream(SHAPE, episodes=3, stationary=True)
    stream = mechanism.open(sampler())
    one = counts(users=1, seed=1)
    first = stream.add(one)
    second = stream.add(one)
    assert (first.transitions[0] == one.transitions.sum(0)).all()
    assert (second.visits[0] == 2 * one.visits.sum(0)).all()
    assert second.users == 2
    assert mechanism.error_bound(2, 0.1) == 0.0
    assert mechanism.noise_variance(2) == {"transitions": 0.0, "visits": 0.0, "rewards": 0.0}


def test_secure_releases_are_stamped():
    mechanism = Central(epsilon=1, delta=1e-6).calibrate(SHAPE)
    assert mechanism.release(counts(), sampler=sampler()).guarantee.simulated
    assert not mechanism.release(counts(), sampler=SecureSampler()).guarantee.simulated


class TestBadInput:
    @pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", True, None])
    def test_epsilon(self, epsilon):
        with pytest.raises(InvalidInputError, match="epsilon"):
            Central(epsilon=epsilon)

    @pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, float("nan")])
    def test_delta(self, delta):
        with pytest.raises(InvalidInputError, match="delta"):
            Central(epsilon=1, delta=delta)

    def test_gaussian_without_delta(self):
        with pytest.raises(CalibrationError, match="delta > 0"):
            Central(epsilon=1, mechanism="gaussian").calibrate(SHAPE)

    def test_unknown_mechanism_suggests(self):
        with pytest.raises(UnknownNameError, match="did you mean 'gaussian'"):
            Central(epsilon=1, mechanism="gausian").calibrate(SHAPE)

    def test_no_printed_batches(self):
        with pytest.raises(UnsupportedError, match="No paper prints constants"):
            Central(epsilon=1, calibration="paper").calibrate(SHAPE)

    def test_central_users_have_no_encoder(self):
        mechanism = Central(epsilon=1).calibrate(SHAPE)
        with pytest.raises(UnsupportedError, match="no encoder"):
            mechanism.encoder()
        with pytest.raises(UnsupportedError, match="raw counts, not reports"):
            Central(epsilon=1).calibrate_stream(SHAPE, episodes=4).encoder()
        assert mechanism.traffic(3) is None

    def refused(self, raw, match, **options):
        mechanism = Central(epsilon=1).calibrate(SHAPE)
        with pytest.raises(InvalidInputError, match=match):
            mechanism.release(raw, sampler=sampler(), **options)

    def test_no_users(self):
        self.refused(Counts.zeros(SHAPE), "users")

    def test_user_counted_twice(self):
        raw = counts()
        self.refused(Counts(raw.users // 2, raw.transitions, raw.rewards), "counted twice")

    def test_rewards_above_one(self):
        raw = counts()
        self.refused(Counts(raw.users, raw.transitions, raw.visits + 1), r"rewards in \[0, 1\]")

    def test_negative_counts(self):
        raw = counts()
        self.refused(Counts(raw.users, raw.transitions, raw.rewards - 99), "nonnegative")

    def test_another_problem(self):
        self.refused(Counts.zeros(Shape(states=2, actions=2, horizon=2)), "Shape")

    def test_visits_outside_played_count_as_nothing(self):
        mechanism = Central(epsilon=1).calibrate(SHAPE)
        released = mechanism.release(
            counts(), sampler=sampler(), support=np.zeros(SHAPE.visits, bool)
        )
        assert not released.visits.any()

    def test_malformed_support(self):
        self.refused(counts(), "support", support=np.ones((2, 3), bool))
        self.refused(counts(), "support", support=np.ones(SHAPE.visits))

    def test_simulated_users(self):
        mechanism = Central(epsilon=1).calibrate(SHAPE)
        with pytest.raises(InvalidInputError, match="users"):
            mechanism.simulate(counts, 0, sampler=sampler())


BOTH = ("transitions", "rewards")


class TestCentred:
    """Transitions and rewards as learners ask for them."""

    def test_golden_noise_is_the_same_on_every_cell(self):
        shape = Shape(states=4, actions=2, horizon=6)
        for trust, std in ((Central(1, 1e-6), 19.82), (Central(1), math.sqrt(2) * 22)):
            mechanism = trust.calibrate(shape, statistics=BOTH, last_transitions=False)
            assert (mechanism.centred, mechanism.last_transitions) == (True, False)
            noise = mechanism.noise_variance(7)
            assert math.sqrt(noise["transitions"]) == pytest.approx(std, rel=1e-3)
            assert noise["visits"] == 2 * noise["transitions"] == 4 * noise["rewards"]
        whole = Central(1, 1e-6).calibrate(shape, statistics=BOTH)
        assert math.sqrt(whole.noise_variance(7)["transitions"]) == pytest.approx(20.7, rel=1e-3)

    @pytest.mark.parametrize("horizon", [1, 6, 20])
    def test_no_more_noise_than_the_shuffled_histogram(self, horizon):
        """The same cells, so what a trusted learner needs is at most what users add together."""
        shape = Shape(states=4, actions=2, horizon=horizon)
        central, shuffled = (
            trust.calibrate(shape, statistics=BOTH, last_transitions=False).noise_variance(10**5)
            for trust in (Central(1, 1e-6), Shuffle(1, 1e-6))
        )
        assert central.keys() == shuffled.keys()
        assert all(central[name] <= 1.001 * shuffled[name] for name in central)
        assert horizon > 1 or central["rewards"] < shuffled["rewards"] / 4  # by Laplace noise

    @pytest.mark.parametrize("last_transitions", [False, True])
    def test_what_is_released(self, last_transitions):
        raw, users = counts(), 50
        mechanism = NoPrivacy().calibrate(SHAPE, statistics=BOTH, last_transitions=last_transitions)
        support = np.ones(SHAPE.visits, bool)
        support[1, 2] = False
        released = mechanism.release(raw, sampler=sampler(), support=support)
        steps = SHAPE.horizon if last_transitions else SHAPE.horizon - 1
        inside = raw.transitions * support[..., None]
        np.testing.assert_array_equal(released.transitions[:steps], inside[:steps])
        assert last_transitions or not released.transitions[-1].any()
        np.testing.assert_array_equal(released.rewards, (raw.rewards - raw.visits / 2) * support)
        np.testing.assert_array_equal(released.visits, raw.visits * support)
        gone = users - inside.sum(axis=(1, 2, 3))
        assert released.dropped_out["transitions"].tolist() == gone[:steps].tolist()
        assert released.dropped_out["rewards"].tolist() == gone.tolist()
        assert gone[1] > 0

    @pytest.mark.parametrize("trust", [Central(epsilon=1), Central(epsilon=1, delta=1e-3)])
    def test_noise_is_as_stated_on_every_cell(self, trust):
        mechanism, raw = trust.calibrate(SHAPE, statistics=BOTH, last_transitions=False), counts()
        drawn = [mechanism.release(raw, sampler=sampler(i)) for i in range(1000)]
        gone = 50 - raw.transitions.sum(axis=(1, 2, 3))
        cells = []
        for one in drawn:
            rewards = one.rewards - (raw.rewards - raw.visits / 2)
            visits = one.visits - raw.visits
            parts = [
                (one.transitions - raw.transitions)[:-1],
                visits / 2 + rewards,
                visits / 2 - rewards,
                one.dropped_out["transitions"] - gone[:-1],
                one.dropped_out["rewards"] - gone,
            ]
            cells.append(np.concatenate([part.ravel() for part in parts]))
        noise = np.array(cells)
        assert (noise == np.rint(noise)).all()
        variance = mechanism.noise_variance(50)["transitions"]
        assert noise.var() == pytest.approx(variance, rel=0.05)
        assert noise.var(axis=0) == pytest.approx(variance, rel=0.4)
        together = np.corrcoef(noise.T) - np.eye(noise.shape[1])
        assert np.abs(together).max() < 6.5 / math.sqrt(len(noise))
        assert not any(one.transitions[-1].any() for one in drawn)

    def test_a_small_epsilon_with_a_large_delta(self):
        shape = Shape(states=2, actions=2, horizon=1)
        mechanism = Central(0.001, 0.05, "gaussian").calibrate(shape, statistics=("visits",))
        assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (0.001, 0.05)
        assert discrete_gaussian_delta(mechanism.noise.sigma, 2, 0.001) <= 0.05

    @pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
    def test_the_audit_finds_the_guarantee_attained(self, mechanism):
        for row in audit([f"central/{mechanism}-centred"], quick=True):
            assert row.holds
            if row.path in ("release", "simulate"):  # at the worst shape
                assert row.exact_epsilon == pytest.approx(1.0, abs=1e-5)

    @pytest.mark.parametrize("last_transitions", [False, True])
    def test_conformance(self, last_transitions):
        mechanism = Central(1).calibrate(
            Shape(2, 2, 2), statistics=BOTH, last_transitions=last_transitions
        )
        assert check_mechanism(mechanism).ok
