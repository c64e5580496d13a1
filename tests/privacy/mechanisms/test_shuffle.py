"""Bits through encoder, shuffler and analyser: same distribution as the direct binomial."""

import functools
import json
import math

import numpy as np
import pytest
from scipy import stats

from discreet import Shuffle as AnyShuffle
from discreet.errors import CalibrationError, DiscreetWarning, InvalidInputError
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.distributions import binomial_pmf
from discreet.privacy.accounting.losses import delta_of_moves, epsilon_of_moves
from discreet.privacy.accounting.search import NoiseBits
from discreet.privacy.mechanisms.bits import BitsEncoder, shuffle
from discreet.privacy.sampling.samplers import SecureSampler
from helpers.auditing import additive
from helpers.sampling import sampler

Shuffle = functools.partial(AnyShuffle, mechanism="bits")
SHAPE = Shape(states=2, actions=2, horizon=2)
TRUST = Shuffle(epsilon=4, delta=1e-3)


def episode(rng):
    states = rng.integers(0, 2, 3)
    return states, rng.integers(0, 2, 2), rng.integers(0, 2, 2).astype(float)


def batch(users, seed=0):
    """Episodes and their counts (rewards are bits already)."""
    rng = np.random.default_rng(seed)
    episodes = [episode(rng) for _ in range(users)]
    total = Counts.zeros(SHAPE)
    for states, actions, rewards in episodes:
        for h in range(2):
            total.transitions[h, states[h], actions[h], states[h + 1]] += 1
            total.rewards[h, states[h], actions[h]] += int(rewards[h])
    return episodes, Counts(users, total.transitions, total.rewards)


def through_the_shuffler(plan, episodes, noise, support=None):
    encoder = plan.encoder(len(episodes), support=support)
    messages = np.concatenate([encoder.encode(*e, noise) for e in episodes])
    mixed = shuffle(messages, noise)
    return plan.release_reports(mixed, len(episodes), secure=noise.secure, support=support)


def vector(private):
    parts = (private.transitions, private.visits, private.rewards)
    return np.concatenate([p.ravel() for p in parts])


class TestRealMessages:
    def test_same_distribution_as_the_direct_binomial(self):
        """Every counter of many batches: real bits and direct draws against the exact pmf."""
        users, repeats = 7, 300
        mechanism = TRUST.calibrate(SHAPE)
        each = mechanism.bits(users)
        trials = users * each.bits
        episodes, counts = batch(users)
        truth = vector(
            type("T", (), {n: getattr(counts, n) for n in ("transitions", "visits", "rewards")})
        )
        real = [
            vector(through_the_shuffler(mechanism, episodes, sampler(seed)))
            for seed in range(repeats)
        ]
        direct = [
            vector(mechanism.release(counts, sampler=sampler(seed))) for seed in range(repeats)
        ]
        for drawn in (real, direct):
            noise = np.array(drawn) - truth + trials * each.probability
            assert np.allclose(noise, np.rint(noise), atol=1e-9)
            ones = np.rint(noise).astype(int)
            pmf = stats.binom.pmf(np.arange(trials + 1), trials, each.probability)
            seen = np.bincount(ones.ravel(), minlength=trials + 1)
            keep = pmf * ones.size > 10
            observed = np.append(seen[keep], seen[~keep].sum())
            expected = np.append(pmf[keep], pmf[~keep].sum()) * ones.size
            assert stats.chisquare(observed, expected).pvalue > 1e-8
            correlation = np.corrcoef(ones[:, 0], ones[:, 1])[0, 1]
            assert abs(correlation) < 6 / math.sqrt(repeats)

    def test_analysers_view_is_a_function_of_the_sums(self):
        """Two batches with the same sums of ones give the analyser the same multiset of messages.

        Messages hold a counter and a bit; after the shuffler their order is fresh randomness.
        """
        mechanism = TRUST.calibrate(SHAPE)
        encoder = mechanism.encoder(5)
        episodes, _ = batch(5)
        messages = np.concatenate([encoder.encode(*e, sampler(1)) for e in episodes])
        assert messages.shape[1] == 2
        assert set(np.unique(messages[:, 1])) <= {0, 1}
        by_hand = np.bincount(messages[:, 0], messages[:, 1])
        rebuilt = [
            (counter, int(i < ones))
            for counter, ones in enumerate(by_hand)
            for i in range(5 * (1 + encoder.noise.bits))
        ]
        assert sorted(rebuilt) == sorted(map(tuple, messages.tolist()))
        one = mechanism.release_reports(messages, 5)
        two = mechanism.release_reports(np.array(rebuilt), 5)
        assert (vector(one) == vector(two)).all()

    def test_number_of_messages_does_not_depend_on_the_episode(self):
        encoder = TRUST.calibrate(SHAPE).encoder(9)
        rng = np.random.default_rng(0)
        counters = [encoder.encode(*episode(rng), sampler(i))[:, 0].tolist() for i in range(20)]
        assert all(c == counters[0] for c in counters)
        traffic = TRUST.calibrate(SHAPE).traffic(9)
        assert len(counters[0]) == traffic.messages

    def test_the_shuffler_moves_messages_and_changes_none(self):
        messages = np.arange(200).reshape(100, 2)
        mixed = shuffle(messages, sampler())
        assert sorted(map(tuple, mixed)) == sorted(map(tuple, messages))
        assert (mixed != messages).any()

    def test_played_counters_only(self):
        support = np.zeros(SHAPE.visits, bool)
        support[:, :, 0] = True
        mechanism = TRUST.calibrate(SHAPE)
        episodes = [(np.array([0, 1, 1]), np.array([0, 0]), np.array([0.5, 1.0]))] * 6
        private = through_the_shuffler(mechanism, episodes, sampler(), support)
        assert not private.visits[~support].any()
        assert not private.transitions[~support].any()
        assert mechanism.traffic(6, support=support).messages == mechanism.traffic(6).messages // 2
        assert np.array_equal(private.support, support)

    def test_secure_bits_are_stamped_so(self):
        mechanism = TRUST.calibrate(SHAPE)
        episodes, _ = batch(3)
        private = through_the_shuffler(mechanism, episodes, SecureSampler())
        assert not private.guarantee.simulated
        assert through_the_shuffler(mechanism, episodes, sampler()).guarantee.simulated

    def test_encoder_travels_as_json(self):
        encoder = TRUST.calibrate(SHAPE).encoder(9)
        copy = BitsEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        rng = np.random.default_rng(3)
        states, actions, rewards = episode(rng)
        assert (
            copy.encode(states, actions, rewards, sampler(4))
            == encoder.encode(states, actions, rewards, sampler(4))
        ).all()

    def test_rewards_are_rounded_without_bias(self):
        encoder = TRUST.calibrate(SHAPE).encoder(2000)
        cell = 16 + 8  # the first reward counter
        noise = sampler(5)
        ones = 0
        for _ in range(2000):
            rows = encoder.encode(np.array([0, 0, 0]), np.array([0, 0]), np.array([0.3, 0]), noise)
            ones += rows[rows[:, 0] == cell, 1].sum()
        expected = 2000 * (0.3 + encoder.noise.bits * encoder.noise.probability)
        assert abs(ones - expected) < 6 * math.sqrt(2000 * 0.25 * (1 + encoder.noise.bits))


class TestRefusals:
    @pytest.fixture
    def plan(self):
        return TRUST.calibrate(SHAPE)

    @pytest.fixture
    def messages(self, plan):
        episodes, _ = batch(4)
        encoder = plan.encoder(4)
        return np.concatenate([encoder.encode(*e, sampler()) for e in episodes])

    def test_missing_message(self, plan, messages):
        with pytest.raises(InvalidInputError, match="missing"):
            plan.release_reports(messages[1:], 4)

    def test_user_counted_twice(self, plan, messages):
        with pytest.raises(InvalidInputError, match="counted twice"):
            plan.release_reports(np.concatenate([messages, messages[: len(messages) // 4]]), 4)

    def test_integers_instead_of_bits(self, plan, messages):
        messages[0, 1] = 2
        with pytest.raises(InvalidInputError, match="one-bit"):
            plan.release_reports(messages, 4)

    def test_foreign_counter(self, plan, messages):
        messages[0, 0] = 10_000
        with pytest.raises(InvalidInputError, match="counters"):
            plan.release_reports(messages, 4)

    def test_malformed_messages(self, plan, messages):
        for bad in (messages.astype(float), messages[:, :1], messages.ravel()):
            with pytest.raises(InvalidInputError, match="integers"):
                plan.release_reports(bad, 4)

    def test_no_users(self, plan):
        with pytest.raises(InvalidInputError, match="users"):
            plan.encoder(0)

    @pytest.mark.parametrize(
        ("states", "actions", "rewards"),
        [
            ([0, 1], [0, 0], [0, 0]),
            ([0, 1, 2], [0, 0], [0, 0]),
            ([0, 1, 1], [0, -1], [0, 0]),
            ([0, 1, 1], [0, 0], [0, 1.5]),
            ([0, 1, 1], [0, 0], [float("nan"), 0]),
            ([0.5, 1, 1], [0, 0], [0, 0]),
        ],
    )
    def test_bad_episodes(self, plan, states, actions, rewards):
        with pytest.raises(InvalidInputError):
            plan.encoder(4).encode(
                np.array(states), np.array(actions), np.array(rewards), sampler()
            )

    @pytest.mark.parametrize(("actions", "ones"), [([1, 0], 0), ([0, 1], 3), ([0, 0], 6)])
    def test_an_episode_that_left_the_policy_is_zeros_from_there_on(self, plan, actions, ones):
        support = np.zeros(SHAPE.visits, bool)
        support[:, :, 0] = True
        encoder = plan.encoder(4, support=support)
        quiet = BitsEncoder(SHAPE, encoder.statistics, NoiseBits(1, 0.0), support)
        rows = quiet.encode(np.array([0, 0, 0]), np.array(actions), np.ones(2), sampler())
        assert rows[:, 1].sum() == ones  # transition, visit and reward of each step that counts

    def test_delta_is_needed(self):
        with pytest.raises(CalibrationError, match="delta > 0"):
            Shuffle(epsilon=1).calibrate(SHAPE)

    def test_no_honest_user_left(self):
        mechanism = Shuffle(epsilon=1, delta=1e-6, honest=0.1).calibrate(SHAPE)
        with pytest.raises(InvalidInputError, match="honest"):
            mechanism.bits(9)

    def test_foreign_encoder(self):
        with pytest.raises(InvalidInputError, match="encoder"):
            BitsEncoder.from_dict({"encoder": "another"})


class TestCalibration:
    SHAPE = Shape(states=4, actions=2, horizon=6)

    @pytest.mark.core
    @pytest.mark.parametrize("users", [100, 2_571, 20_000, 10**7])
    def test_exact_noise_delivers(self, users):
        mechanism = Shuffle(epsilon=1, delta=1e-6).calibrate(self.SHAPE)
        each = mechanism.bits(users)
        noise = binomial_pmf(users * each.bits, each.probability)
        assert delta_of_moves(noise, 18, 18, 1.0) <= 1e-6
        assert mechanism.noise_variance(users)["visits"] == pytest.approx(25.37**2, rel=0.01)

    def test_fewer_statistics_need_less_noise(self):
        mechanism = Shuffle(epsilon=1, delta=1e-6).calibrate(
            self.SHAPE, statistics=("transitions", "rewards")
        )
        assert math.sqrt(mechanism.noise_variance(20_000)["rewards"]) == pytest.approx(
            20.7, rel=0.01
        )

    def test_honest_fraction(self):
        all_honest = Shuffle(epsilon=1, delta=1e-6).calibrate(self.SHAPE)
        half = Shuffle(epsilon=1, delta=1e-6, honest=0.5).calibrate(self.SHAPE)
        each = half.bits(20_000)
        noise = binomial_pmf(10_000 * each.bits, each.probability)
        assert delta_of_moves(noise, 18, 18, 1.0) <= 1e-6
        ratio = half.noise_variance(20_000)["visits"] / all_honest.noise_variance(20_000)["visits"]
        assert ratio == pytest.approx(2, rel=0.01)
        assert any("0.5 of the users" in text for text in half.guarantee.assumptions)

    def test_an_integer_epsilon_is_accepted(self):
        assert Shuffle(epsilon=1, delta=1e-6).calibrate(self.SHAPE).guarantee.epsilon == 1.0

    @pytest.mark.parametrize(
        ("horizon", "epsilon", "std"),
        [(2, 0.1, 1222), (2, 1, 122), (6, 0.1, 3780), (6, 0.5, 756), (6, 2, 189), (20, 1, 1301)],
    )
    def test_printed_noise(self, horizon, epsilon, std):
        shape = Shape(states=4, actions=2, horizon=horizon)
        with pytest.warns(DiscreetWarning, match="printed shuffle constants"):
            mechanism = Shuffle(epsilon=epsilon, delta=1e-6, calibration="paper").calibrate(shape)
        assert math.sqrt(mechanism.noise_variance(100)["visits"]) == pytest.approx(std, rel=0.01)

    def test_printed_constants_deliver_far_more_than_claimed_in_the_sum_view(self):
        with pytest.warns(DiscreetWarning):
            mechanism = Shuffle(epsilon=1, delta=1e-6, calibration="paper").calibrate(self.SHAPE)
        assert mechanism.guarantee.epsilon == pytest.approx(0.055, rel=0.01)
        assert mechanism.guarantee.claimed == "(1, 1e-06)-SDP"
        for users in (1, 1000, 600_000, 1_200_000, 10**8):
            each = mechanism.bits(users)
            noise = binomial_pmf(users * each.bits, each.probability)
            assert epsilon_of_moves(noise, 18, 18, 1e-6) <= mechanism.guarantee.epsilon * (1 + 1e-6)

    def test_printed_constants_with_dishonest_users_deliver_less(self):
        with pytest.warns(DiscreetWarning):
            half = Shuffle(epsilon=1, delta=1e-6, calibration="paper", honest=0.5)
            mechanism = half.calibrate(self.SHAPE)
        for users in (1000, 1_200_000):
            each = mechanism.bits(users)
            noise = binomial_pmf(users // 2 * each.bits, each.probability)
            assert epsilon_of_moves(noise, 18, 18, 1e-6) <= mechanism.guarantee.epsilon * (1 + 1e-6)
        assert mechanism.guarantee.epsilon > 0.07


class TestLargeEpsilon:
    """Few users of many noise bits each."""

    TRUST = Shuffle(epsilon=10, delta=1e-6)

    def test_messages_are_bits_equally_many_from_everybody(self):
        mechanism = self.TRUST.calibrate(SHAPE)
        encoder = mechanism.encoder(1000)
        rng = np.random.default_rng(0)
        sent = [encoder.encode(*episode(rng), sampler(i)) for i in range(40)]
        assert all(np.array_equal(rows[:, 0], sent[0][:, 0]) for rows in sent)
        assert all(np.isin(rows[:, 1], (0, 1)).all() for rows in sent)
        assert len(sent[0]) == mechanism.traffic(1000).messages
        copy = BitsEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        assert copy.noise == encoder.noise
        assert np.array_equal(
            copy.encode(*episode(np.random.default_rng(1)), sampler(2)),
            encoder.encode(*episode(np.random.default_rng(1)), sampler(2)),
        )

    def test_secure_devices_and_half_of_them_honest(self):
        mechanism = Shuffle(epsilon=10, delta=1e-6, honest=0.5).calibrate(SHAPE)
        each = mechanism.bits(40)
        assert each == self.TRUST.calibrate(SHAPE).bits(20)
        assert mechanism.noise_variance(40)["visits"] == pytest.approx(2 * each.variance(20))
        episodes, _ = batch(3)
        assert not through_the_shuffler(mechanism, episodes, SecureSampler()).guarantee.simulated

    def test_the_running_code_delivers(self):
        for users in (1, 50, 1000):
            mechanism = self.TRUST.calibrate(SHAPE)
            assert 4 < additive(mechanism, users=users).epsilon(1e-6) <= 10 * (1 + 1e-6)


def test_a_batch_of_more_users_than_there_are_is_refused():
    mechanism = Shuffle(1, 1e-6).calibrate(Shape(2, 2, 2))
    assert mechanism.bits(10**12).bits == 1
    with pytest.raises(InvalidInputError, match=r"users <= 1e\+12, got .* smaller"):
        mechanism.bits(10**12 + 1)
