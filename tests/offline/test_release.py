"""The one release: exactly the noise of the plan, on every declared counter, whoever was there."""

import importlib
import itertools

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, Shuffle, fit
from discreet.auditing.draws import RecordingSampler
from discreet.auditing.probes import PresetSampler
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp import Shape, Trajectories
from discreet.offline.release import Randomness, Slots, check_trust, release
from discreet.privacy.sampling.samplers import SecureSampler, SimulationSampler

pytestmark = pytest.mark.core

SHAPE = Shape(states=2, actions=3, horizon=2)
BOTH = ("transitions", "rewards")
TRUST = Central(1, 1e-6, mechanism="gaussian")
SOME = np.zeros(SHAPE.visits, bool)
SOME[:, 0, :2] = True
SOME[:, 1, 2] = True
SLOTS = Slots.of(SOME, np.ones(2, bool))


class Recorder(SimulationSampler):
    """Remembers what it was asked for."""

    def __init__(self, silent=False):
        super().__init__(np.random.default_rng(0))
        self.asked, self.silent = [], silent

    def discrete_gaussian(self, sigma, size):
        self.asked.append((sigma, size))
        drawn = super().discrete_gaussian(sigma, size)
        return drawn * 0 if self.silent else drawn


def nobody_moves(users=4):
    return Trajectories(np.zeros((users, 3), int), np.zeros((users, 2), int), np.zeros((users, 2)))


def released(data, sampler, *, slots=SLOTS, trust=TRUST, statistics=BOTH, keep_last=False):
    return release(
        data,
        slots,
        trust,
        statistics=statistics,
        keep_last=keep_last,
        randomness=Randomness(sampler, np.random.default_rng(0)),
    )


@pytest.mark.parametrize("statistics", [BOTH, BOTH[:1]])
def test_the_noise_is_that_of_the_plan_for_this_trust(statistics):
    plan = TRUST.calibrate(SLOTS.shape, statistics=statistics, last_transitions=True)
    recorder = Recorder()
    found = released(nobody_moves(), recorder, statistics=statistics)
    assert {sigma for sigma, _ in recorder.asked} == {plan.noise.sigma}
    assert found.noise_variance == plan.noise_variance(4)
    assert found.guarantee == plan.guarantee.stamped(secure=False)


def test_every_declared_counter_has_noise_whether_somebody_was_there_or_not():
    recorder = Recorder()
    found = released(nobody_moves(), recorder)
    assert np.array_equal(found.support, SLOTS.support)
    rows = int(SLOTS.support.sum())
    assert found.row_transitions.shape == (rows, 2)
    assert sum(int(np.prod(size)) for _, size in recorder.asked) >= rows * 2 + rows
    assert (found.row_transitions[1:] != 0).mean() > 0.8


def test_no_episode_is_refused_and_one_user_moves_the_sums_by_no_more_than_the_plan_says():
    plan = TRUST.calibrate(SLOTS.shape, statistics=BOTH, last_transitions=True)
    silent = Recorder(silent=True)
    vectors = []
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(3), repeat=2):
            for rewards in itertools.product(range(2), repeat=2):
                one = Trajectories(
                    np.array([states]), np.array([actions]), np.array([rewards], float)
                )
                found = released(one, silent)
                ones = found.row_visits / 2 + found.row_rewards
                parts = [found.row_transitions.ravel(), ones, found.row_visits - ones]
                vectors.append(np.concatenate([*parts, *found.dropped_out.values()]))
    moves = np.array(vectors)[:, None] - np.array(vectors)[None]
    assert (np.abs(moves).sum(axis=2)).max() <= plan.sensitivity.l1 + 1e-9
    assert np.sqrt((moves**2).sum(axis=2)).max() <= plan.sensitivity.l2 + 1e-9


def test_undeclared_actions_are_released_as_other():
    people = Trajectories(np.zeros((4, 3), int), np.full((4, 2), 2), np.ones((4, 2)))
    found = released(people, Recorder(silent=True))
    assert found.transitions[:, 0, 2].sum() == 8
    assert found.transitions.sum() == 8


def test_the_sampler_says_whether_it_is_a_rehearsal():
    assert released(nobody_moves(), Recorder()).guarantee.simulated
    assert not Randomness.of("simulation", 3).sampler.secure


def test_secure_noise_is_the_operating_systems():
    pytest.importorskip("opendp")
    sampler = Randomness.of("secure", None).sampler
    assert isinstance(sampler, SecureSampler)
    assert sampler.secure


def test_a_rehearsal_is_seeded_with_streams_of_its_own():
    one, two = Randomness.of("simulation", 3), Randomness.of("simulation", 3)
    assert np.array_equal(
        one.sampler.discrete_gaussian(9.0, 20), two.sampler.discrete_gaussian(9.0, 20)
    )
    assert one.rounding.random() == two.rounding.random()
    other = Randomness.of("simulation", 4)
    assert other.rounding.random() != Randomness.of("simulation", 3).rounding.random()


@pytest.mark.parametrize(
    ("sampler", "seed", "said"),
    [
        ("secure", 1, "Secure noise cannot be seeded, got seed=1"),
        ("fast", None, "sampler to be one of 'secure', 'simulation'"),
        ("simulation", -1, "seed to be an integer >= 0"),
        ("simulation", 0.5, "seed to be an integer >= 0"),
    ],
)
def test_bad_randomness_is_refused(sampler, seed, said):
    with pytest.raises(InvalidInputError, match=said):
        Randomness.of(sampler, seed)


@pytest.mark.parametrize("trust", [Local(1), Shuffle(1, 1e-6)])
def test_logged_episodes_have_no_local_or_shuffle_release(trust):
    with pytest.raises(UnsupportedError, match=r"use Central\(epsilon, delta\)"):
        check_trust(trust)


@pytest.mark.parametrize("trust", ["central", None, Central])
def test_what_is_no_trust_model_is_refused(trust):
    with pytest.raises(InvalidInputError, match="Expected a trust model"):
        check_trust(trust)


def test_central_and_no_privacy_are_welcome():
    assert check_trust(TRUST) is None
    assert check_trust(NoPrivacy()) is None


def fitted(monkeypatch, sampler, data):
    """What a whole fit with this sampler as the secure one was made of."""
    module, seen = importlib.import_module("discreet.offline.fit"), []
    made = module._fitted
    monkeypatch.setattr("discreet.offline.release.SecureSampler", lambda: sampler)
    monkeypatch.setattr(module, "_fitted", lambda *given: [seen.append(given[0]), made(*given)][1])
    fit(data, TRUST, shape=SHAPE, support=SOME)
    [counts] = seen
    return counts


def test_a_fit_draws_once_and_is_made_of_counts_plus_the_draw(monkeypatch):
    """Who draws twice may choose the draw that is nearer to the data."""
    pytest.importorskip("opendp")
    recorder, data = RecordingSampler(), nobody_moves(50)
    found = fitted(monkeypatch, recorder, data)
    plan = TRUST.calibrate(SLOTS.shape, statistics=BOTH, last_transitions=True)
    rows = int(SLOTS.support.sum())
    transitions, rewards, *left = (draw.values for draw in recorder.draws)
    assert (transitions.size, rewards.size) == (rows * SHAPE.states, 2 * rows)
    assert {draw.asked[:2] for draw in recorder.draws} == {("discrete_gaussian", plan.noise.sigma)}
    still = released(data, PresetSampler.still())
    apart = found.row_transitions - still.row_transitions
    assert np.array_equal(apart.ravel(), transitions)
    zeros, ones = rewards.reshape(2, rows)
    assert np.array_equal(found.row_visits - still.row_visits, zeros + ones)
    assert np.array_equal(2 * (found.row_rewards - still.row_rewards), ones - zeros)
    for name, draw in zip(("transitions", "rewards"), left, strict=True):
        assert np.array_equal(found.dropped_out[name] - still.dropped_out[name], draw)


def test_a_secure_fit_is_never_seeded(monkeypatch):
    pytest.importorskip("opendp")

    def nobody(*_):
        raise AssertionError("Real people are protected by seeded noise.")

    monkeypatch.setattr(SimulationSampler, "__init__", nobody)
    still = nobody_moves(5000)  # whose values are far from 0 and 2: noise shows
    people = Trajectories(still.states, still.actions, still.rewards + np.arange(2))
    one, other = (fit(people, TRUST, shape=SHAPE, support=SOME) for _ in range(2))
    assert not one.guarantee.simulated
    assert one.behaviour_value != other.behaviour_value


def test_several_episodes_of_one_person_are_refused():
    with pytest.raises(UnsupportedError, match="participations=2"):
        check_trust(Central(1, 1e-6, participations=2))
