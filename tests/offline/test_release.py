"""The one release: exactly the noise of the plan, on every declared counter, whoever was there."""

import importlib
import itertools
from dataclasses import replace

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, Shuffle, evaluate_policy, fit
from discreet.auditing.draws import RecordingSampler
from discreet.auditing.probes import PresetSampler
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp import Shape, Trajectories
from discreet.offline.release import (
    People,
    Randomness,
    Slots,
    check_trust,
    drawn,
    logged,
    release,
)
from discreet.privacy.mechanisms.additive import AddedOnce
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

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        drawn = super().discrete_laplace(scale, size)
        return drawn * 0 if self.silent else drawn


def nobody_moves(users=4):
    return Trajectories(np.zeros((users, 3), int), np.zeros((users, 2), int), np.zeros((users, 2)))


def released(data, sampler, *, slots=SLOTS, trust=TRUST, statistics=BOTH, last_transitions=False):
    return release(
        data,
        slots,
        trust,
        statistics=statistics,
        last_transitions=last_transitions,
        randomness=Randomness(sampler, np.random.default_rng(0)),
        people=People.given(None, data, trust),
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
    monkeypatch.setattr(
        module, "_fitted", lambda *given: [seen.append(given[0].counts), made(*given)][1]
    )
    fit(data, TRUST, shape=SHAPE, support=SOME)
    [counts] = seen
    return counts


def test_a_fit_draws_once_and_is_made_of_counts_plus_the_draw(monkeypatch):
    """Who draws twice may choose the draw that is nearer to the data."""
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

    def nobody(*_):
        raise AssertionError("Real people are protected by seeded noise.")

    monkeypatch.setattr(SimulationSampler, "__init__", nobody)
    still = nobody_moves(5000)  # whose values are far from 0 and 2: noise shows
    people = Trajectories(still.states, still.actions, still.rewards + np.arange(2))
    one, other = (fit(people, TRUST, shape=SHAPE, support=SOME) for _ in range(2))
    assert not one.guarantee.simulated
    assert one.behaviour_value != other.behaviour_value


def returning(actions, owners, *, trust, sampler, slots=SLOTS, statistics=BOTH):
    """The release of one-state episodes that play ``actions``, those of ``owners``."""
    taken = np.array(actions)
    zeros = np.zeros((len(taken), taken.shape[1] + 1), int)
    data = Trajectories(zeros, taken, np.zeros(taken.shape))
    people = People.given(owners, data, trust)
    randomness = Randomness(sampler, np.random.default_rng(0))
    options = {"statistics": statistics, "last_transitions": False, "randomness": randomness}
    return release(data, slots, trust, people=people, **options)


ARMS = Slots.of(np.ones((1, 1, 2), bool), np.ones(1, bool))


@pytest.mark.parametrize("statistics", [BOTH, BOTH[:1]])
def test_two_episodes_of_one_person_move_the_sums_by_exactly_what_the_plan_says(statistics):
    """One or two episodes against one or two others, and against one that counts as nothing."""
    trust, silent = replace(TRUST, participations=2), Recorder(silent=True)
    slots = Slots.of(np.ones((2, 2, 2), bool), np.array([True, False]))
    plan = trust.calibrate(slots.shape, statistics=statistics, together=True)
    ones = list(itertools.product(range(2), range(2), range(2), range(2)))
    vectors = set()
    for some in [(one,) for one in ones] + list(itertools.combinations_with_replacement(ones, 2)):
        states = np.array([(first, second, 0) for first, second, _, _ in some])
        data = Trajectories(states, np.array(some)[:, 2:], states[:, :2] * 1.0)
        people = People.given(["ann"] * len(some), data, trust)
        randomness = Randomness(silent, np.random.default_rng(0))
        options = {"statistics": statistics, "last_transitions": False, "randomness": randomness}
        found = release(data, slots, trust, people=people, **options)
        parts = [found.row_transitions.ravel()]
        if found.row_rewards is not None:
            earned = found.row_visits / 2 + found.row_rewards
            parts += [earned, found.row_visits - earned, *found.dropped_out.values()]
        vectors.add(tuple(np.concatenate(parts).tolist()))
        assert found.users == 2  # places: how many episodes she has is not said
    rows = np.array(sorted(vectors))
    moves = rows[:, None] - rows[None]
    assert np.abs(moves).sum(axis=2).max() == plan.sensitivity.l1
    assert np.sqrt((moves**2).sum(axis=2)).max() == pytest.approx(plan.sensitivity.l2)


def whole_view(noise, means):
    """P(two released counters) whose exact values are ``means``."""
    steps = np.arange(-60, 65) - np.array(means)[:, None]
    size = getattr(noise, "sigma", None) or noise.scale
    weights = np.exp(
        -np.abs(steps / size) if noise.kind == "laplace" else -((steps / size) ** 2) / 2
    )
    return np.outer(*(weights / weights.sum(axis=1, keepdims=True)))


@pytest.mark.parametrize(("mechanism", "delivered"), [("gaussian", 1e-3), ("laplace", 0.0)])
def test_the_whole_view_of_two_episodes_in_one_release_is_enumerated(mechanism, delivered):
    """All pairs of people with one to three episodes, of whom two are drawn; beside a bystander.

    The noise for two batches, once in each, is not enough for one with both.
    """
    trust = Central(3, 1e-3, mechanism=mechanism, participations=2)
    plan = trust.calibrate(ARMS.shape, statistics=("transitions",), together=True)
    apart = trust.calibrate(ARMS.shape, statistics=("transitions",))

    def delta(noise):
        views = []
        for number in (1, 2, 3):
            for acts in itertools.combinations_with_replacement(range(2), number):
                kept = itertools.combinations(acts, min(2, number))
                sums = [(some.count(0) + 1, some.count(1)) for some in kept]
                views.append(np.mean([whole_view(noise, means) for means in sums], axis=0))
        pairs = itertools.permutations(views, 2)
        return max(np.maximum(p - np.exp(3) * q, 0).sum() for p, q in pairs)

    assert 0.9 * delivered <= delta(plan.noise) <= delivered + 1e-12
    assert plan.guarantee.delta == delivered
    assert delta(apart.noise) > 2e-3


def test_at_most_m_episodes_of_each_are_drawn_and_everyone_is_as_likely():
    of = np.array([0] * 5 + [1] * 2 + [2])
    seen = np.zeros(len(of))
    for seed in range(2000):
        kept = drawn(of, 2, np.random.default_rng(seed))
        assert np.bincount(of[kept]).tolist() == [2, 2, 1]
        seen[kept] += 1
    assert np.abs(seen / 2000 - np.repeat([0.4, 1], [5, 3])).max() < 0.05


EVERY = np.full(SHAPE.visits, 1 / 3)


@pytest.mark.parametrize("door", ["fit", "evaluate"])
@pytest.mark.parametrize("known", [None, np.zeros((2, 3))], ids=["rewards", "known"])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_m_episodes_of_a_person_count_and_the_noise_is_for_m_through_every_door(
    monkeypatch, door, known, mechanism, most
):
    """The sums behind the noise, of one to six episodes of ann; and the noise that was drawn."""
    module, seen = importlib.import_module(f"discreet.offline.{door}"), []
    trust, usual = Central(1, 1e-6, mechanism=mechanism, participations=most), module.logged
    statistics = BOTH if known is None else BOTH[:1]
    plan = trust.calibrate(SHAPE, statistics=statistics, last_transitions=True, together=True)
    size = plan.noise.sigma if mechanism == "gaussian" else plan.noise.scale
    once = replace(trust, participations=1).calibrate(SHAPE, statistics=statistics)
    grown = plan.noise.variance / once.noise.variance
    assert grown == pytest.approx(most**2, rel=0.05)  # not m, as of m releases
    monkeypatch.setattr(module, "logged", lambda made: [seen.append(made), usual(made)][1])
    call, *policy = {"fit": (fit,), "evaluate": (evaluate_policy, EVERY)}[door]
    for number in range(1, 7):
        recorder = Recorder(silent=True)
        monkeypatch.setattr("discreet.offline.release.SimulationSampler", lambda _, r=recorder: r)
        owners = ["ann"] * number + ["bob"]
        options = {"shape": SHAPE, "users": owners, "sampler": "simulation", "seed": number}
        call(nobody_moves(number + 1), *policy, trust, rewards=known, **options)
        assert seen[-1].row_transitions.sum() == 2 * (min(number, most) + 1)
        assert seen[-1].users == 2 * most
        assert seen[-1].noise_variance == plan.noise_variance(2 * most)
        assert {asked for asked, _ in recorder.asked} == {size}


def test_what_anybody_did_does_not_say_which_episodes_are_drawn():
    owners, sampler = ["ann"] * 3 + ["bob"], PresetSampler.still()
    trust = Central(1, 1e-6, mechanism="gaussian", participations=2)
    found = set()
    for acts in itertools.product(range(2), repeat=4):
        one = returning([[a] for a in acts], owners, trust=trust, sampler=sampler, slots=ARMS)
        number = 4 - int(one.dropped_out["rewards"][0])
        assert number == 3
        kept = drawn(np.array([0, 0, 0, 1]), 2, np.random.default_rng(0))
        assert one.visits[0, 0, 1] == np.array(acts)[kept].sum()
        found.add(tuple(kept))
    assert len(found) == 1


@pytest.mark.parametrize("statistics", [BOTH, BOTH[:1]])
def test_the_number_of_episodes_is_estimated(statistics):
    trust = Central(1, 1e-6, mechanism="gaussian", participations=3)
    owners = [f"p{i % 700}" for i in range(1200)]
    numbers = []
    for seed in range(60):
        sampler = SimulationSampler(np.random.default_rng(seed))
        acts = np.zeros((1200, 1), int)
        options = {"trust": trust, "slots": ARMS, "statistics": statistics}
        found = returning(acts, owners, sampler=sampler, **options)
        assert found.users == 2100
        counts, doubt = logged(found)
        numbers.append((counts.users - 1200) / np.sqrt(doubt))
    assert abs(np.mean(numbers)) < 0.5
    assert 0.7 < np.std(numbers) < 1.4


def test_whose_episodes_they_are_has_to_be_said():
    several = replace(TRUST, participations=2)
    with pytest.raises(InvalidInputError, match="Expected users"):
        People.given(None, nobody_moves(), several)
    sums = nobody_moves().counts(SHAPE, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="Expected episodes, got their sums"):
        People.given(range(4), sums, several)
    with pytest.raises(InvalidInputError, match="3 people and participations=1"):
        People.given([1, 2, 3, 3], sums, TRUST)
    assert People.given([1, "1", 3, 3], nobody_moves(), TRUST).number == 2


def test_a_stranger_that_does_not_know_of_one_release_for_all_is_refused(monkeypatch):
    made = AddedOnce.calibrate

    def stranger(self, spec, trust, request):
        return made(self, spec, trust, request._replace(together=False))

    monkeypatch.setattr(AddedOnce, "calibrate", stranger)
    trust = Central(1.5, 1e-6, mechanism="gaussian", participations=2)
    with pytest.raises(UnsupportedError, match="several episodes of one person in one release"):
        trust.calibrate(SHAPE, together=True)
