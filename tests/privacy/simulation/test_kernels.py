"""One user after the other: every part against plain NumPy, the whole against the exact law."""

import itertools
from collections import Counter

import numpy as np
import pytest

from discreet.mdp import RandomMDP, evaluate
from discreet.mdp.counts import Counts
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.mdp.shape import Shape
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.simulation import kernels
from discreet.privacy.simulation.kernels import (
    CATEGORY,
    CELL,
    RESPONSES,
    UNIT,
    NextPolicy,
    Randomness,
    Scratch,
    Users,
)
from discreet.privacy.simulation.users import empty_counters, true_model
from discreet.privacy.statistics import flatten
from helpers.plain_kernels import Scripted, midpoints, plainly

SHAPE = Shape(states=2, actions=2, horizon=2)
SIZES = (SHAPE.horizon, SHAPE.states, SHAPE.actions)
STATISTICS = ("transitions", "visits", "rewards")
PLACES = [*itertools.product(range(2), repeat=4)]
"""All (h, s, a, s')."""


def quarters():
    """An MDP whose probabilities are quarters, so that four midpoints per draw are its law."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 5, SHAPE.visits) / 4
    return TabularMDP(
        transitions=np.stack([first, 1 - first], axis=-1),
        rewards=rng.integers(0, 5, SHAPE.visits) / 4,
        initial=np.array([0.25, 0.75]),
    )


def users_of(mdp, randomness, *, pooled=False):
    cells = (1 if pooled else SHAPE.horizon, SHAPE.states, SHAPE.actions)
    nobody = np.zeros((0, 2 * SHAPE.horizon + 1))
    return Users(true_model(mdp), empty_counters(cells), empty_counters(cells), randomness, nobody)


def silent(count):
    nothing = np.zeros((count, 0))
    return Randomness(nothing, nothing, np.zeros(0, np.int64), nothing, 1.0, UNIT, SHAPE.horizon)


def next_policy(actions=None, probabilities=None):
    return NextPolicy(
        np.zeros((2, 2), np.int64) if actions is None else np.array(actions),
        np.full(SHAPE.visits, 0.5) if probabilities is None else probabilities,
        np.full((2, 2), -1),
        np.array([np.nan]),
    )


def scratch():
    return Scratch(np.zeros((1, *SHAPE.visits)), np.zeros((2, 2, 2, 5)), np.zeros((3, 2)))


def keep(*arguments):
    """A planner that leaves the policy as it is."""


def play(users, policy, environment, rng=None, *, plan=keep, stochastic=False, count=1):
    """The loop in plain Python; the values that it notes."""
    out = np.zeros(count)
    rows = np.arange(3.0 * count).reshape(count, 3)
    draws = [environment.random() for _ in range(count * users.chances.shape[1])]
    users = Users(*users[:-1], chances=np.reshape(draws, (count, -1)))
    kernels.run_block(plan, rows, users, scratch(), policy, stochastic, out, rng)
    return out


@pytest.mark.parametrize("weights", [[1, 2, 5], [0, 8, 0], [4, 0, 4], [8]])
def test_a_category_is_drawn_with_its_probability(weights):
    cumulative = np.cumsum(np.array(weights) / 8)
    drawn = Counter(kernels.draw.py_func(cumulative, u) for u in midpoints(64))
    assert drawn == {i: 8 * w for i, w in enumerate(weights) if w}


def test_rounding_of_a_cumulative_law_falls_on_its_last_category():
    assert kernels.draw.py_func(np.array([0.5, 1 - 1e-9]), 1 - 1e-12) == 1


@pytest.mark.parametrize("weights", [[1, 2, 5], [0, 8, 0], [8, 0, 0]])
def test_an_action_is_chosen_with_its_probability(weights):
    probabilities = np.zeros((2, 2, 3))
    probabilities[1, 0] = np.array(weights) / 8
    chosen = Counter(kernels.choose.py_func(probabilities, 1, 0, u) for u in midpoints(64))
    assert chosen == {a: 8 * w for a, w in enumerate(weights) if w}


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("stochastic", [False, True])
def test_the_value_of_a_policy_is_that_of_exact_evaluation(stationary, stochastic):
    rng = np.random.default_rng(8)
    transitions = rng.dirichlet(np.ones(3), size=(1 if stationary else 4, 3, 2))
    mdp = TabularMDP(
        transitions=np.broadcast_to(transitions, (4, 3, 2, 3)),
        rewards=np.broadcast_to(rng.random((1, 3, 2)), (4, 3, 2)),
        initial=rng.dirichlet(np.ones(3)),
        horizon=4,
    )
    actions, probabilities = rng.integers(0, 2, (4, 3)), rng.dirichlet(np.ones(2), size=(4, 3))
    policy = StochasticPolicy(probabilities) if stochastic else DeterministicPolicy(actions)
    found = kernels.policy_value.py_func(
        transitions, mdp.rewards, mdp.initial, actions, probabilities, stochastic, np.ones((5, 3))
    )
    assert found == pytest.approx(evaluate(mdp, policy), rel=1e-12)


def test_a_change_of_policy_is_noticed_once():
    actions, last = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])
    assert kernels.changed.py_func(actions, last)
    assert np.array_equal(actions, last)
    assert not kernels.changed.py_func(actions, last)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_step_adds_to_its_own_three_counters(place, pooled):
    counters = empty_counters((1 if pooled else 2, 2, 2))
    kernels.add.py_func(*counters[1:], place, 2.0, 3.0, 5.0)
    h, s, a, t = place
    transitions, rewards = np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64)
    transitions[place] = 1
    layout = flatten(Counts(1, transitions, rewards), STATISTICS, stationary=pooled)
    assert counters.transitions[0 if pooled else h, s, a, t] == 2.0
    moves = counters.transitions.size
    assert counters.everything[:moves] @ layout[:moves] == 2.0
    assert counters.everything[moves:] @ layout[moves:] == 3.0
    assert sorted(counters.everything[counters.everything != 0]) == [2.0, 3.0, 5.0]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bit", [0.0, 1.0])
def test_answers_about_cells_read_the_gains_of_a_report_laid_out_as_counts(place, bit):
    transitions, rewards = np.zeros(SHAPE.transitions, np.int64), np.zeros(SHAPE.visits, np.int64)
    transitions[place] = 1
    rewards[place[:3]] = 1
    asked = np.flatnonzero(flatten(Counts(1, transitions, rewards), STATISTICS, stationary=False))
    gains = np.random.default_rng(0).integers(-99, 99, (2, 32)).astype(float)
    steps = np.zeros(0, np.int64)
    answer = kernels.contribution.py_func(gains, steps, CELL, 1, place, bit, SIZES)
    move, visit, earn = gains[1, asked]
    assert answer == (move, visit, bit * earn)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("reported", [0, 1])
def test_answers_about_categories_are_silent_at_other_steps(place, bit, reported):
    h, s, a, t = place
    gains, steps = np.arange(32.0).reshape(2, 16), np.array([1 - reported, reported])
    cube = gains[1].reshape(2, 2, 2, 2)  # (s, a, s', reward bit)
    answer = kernels.contribution.py_func(gains, steps, CATEGORY, 1, place, float(bit), SIZES)
    gain = cube[s, a, t, bit] if h == reported else 0.0
    assert answer == (gain, gain, bit * gain)


def test_without_randomisation_a_step_counts_one():
    nothing = np.zeros((1, 0))
    for bit in (0.0, 1.0):
        answer = kernels.contribution.py_func(
            nothing, np.zeros(0, np.int64), UNIT, 0, (1, 1, 0, 1), bit, SIZES
        )
        assert answer == (1.0, 1.0, bit)
    assert RESPONSES == {"unit": UNIT, "cell": CELL, "category": CATEGORY}


def test_what_is_public_is_debiased_from_integers():
    rng = np.random.default_rng(4)
    raw, noise = rng.integers(-9, 9, 6).astype(float), rng.integers(-99, 99, (3, 6)).astype(float)
    centres, scale = rng.random((3, 6)), 1 / 0.3
    public = np.zeros(6)
    kernels.publish.py_func(raw, public, noise, centres, scale, 2)
    assert np.array_equal(public, scale * ((raw + noise[2]) - centres[2]))


def test_added_noise_is_public_with_the_counts_and_nothing_else_is():
    raw, noise, public = np.arange(4.0), np.array([[9.0] * 4, [-5.0, 0.0, 2.0, 7.0]]), np.ones(4)
    kernels.publish.py_func(raw, public, noise, np.zeros((2, 0)), 77.0, 1)
    assert np.array_equal(public, raw + noise[1])
    kernels.publish.py_func(raw, public, np.zeros((2, 0)), np.zeros((2, 0)), 77.0, 1)
    assert np.array_equal(public, raw + noise[1])  # no privacy: counted in place, not here


def paths_of(mdp, policy):
    """The exact law of (states, reward bits) of one episode."""
    law = Counter()
    for states in itertools.product(range(2), repeat=3):
        chance = mdp.initial[states[0]]
        earned = []
        for h in range(2):
            a = policy[h, states[h]]
            chance *= mdp.transitions[h, states[h], a, states[h + 1]]
            earned.append(mdp.rewards[h, states[h], a])
        for bits in itertools.product((0, 1), repeat=2):
            odds = [p if bit else 1 - p for p, bit in zip(earned, bits, strict=True)]
            law[states, bits] += chance * np.prod(odds)
    return {path: p for path, p in law.items() if p}


def path_in(counters):
    """The episode behind the counters of one user."""
    states, bits = [], []
    for h in range(2):
        s, a, t = np.argwhere(counters.transitions[h])[0]
        states.append(int(s))
        bits.append(int(counters.rewards[h, s, a]))
    return (*states, int(t)), tuple(bits)


def test_episodes_have_exactly_the_law_of_the_model(monkeypatch):
    plainly(monkeypatch, kernels)
    mdp, actions = quarters(), np.array([[0, 1], [1, 0]])
    found = Counter()
    for draws in itertools.product(midpoints(4), repeat=5):
        users, environment = users_of(mdp, silent(1)), Scripted(draws)
        play(users, next_policy(actions), environment)
        assert environment.left == []  # one draw to start, two per step
        found[path_in(users.public)] += 4.0**-5
    assert dict(found) == paths_of(mdp, actions)


def test_actions_of_a_stochastic_policy_come_from_the_learner(monkeypatch):
    plainly(monkeypatch, kernels)
    probabilities = np.array([[[0.25, 0.75], [1, 0]], [[0.5, 0.5], [0, 1.0]]])
    mdp = TabularMDP(
        transitions=np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2, 2)),
        rewards=np.zeros(SHAPE.visits),
        initial=np.array([1.0, 0.0]),
    )
    chosen = Counter()
    for draws in itertools.product(midpoints(4), repeat=2):
        users, rng = users_of(mdp, silent(1)), Scripted(draws)
        policy = next_policy(probabilities=probabilities)
        play(users, policy, np.random.default_rng(0), rng, stochastic=True)
        assert rng.left == []
        chosen[tuple(int(users.public.visits[h, 0, 1]) for h in range(2))] += 1
    assert chosen == {(0, 0): 2, (0, 1): 2, (1, 0): 6, (1, 1): 6}


@pytest.mark.parametrize("pooled", [False, True])
def test_without_privacy_the_counts_are_public(monkeypatch, pooled):
    plainly(monkeypatch, kernels)
    mdp = RandomMDP(states=2, actions=2, horizon=2, seed=1)
    users = users_of(mdp, silent(20), pooled=pooled)
    play(users, next_policy(), np.random.default_rng(2), count=20)
    assert users.raw.visits.sum() == 40
    assert np.array_equal(users.raw.everything, users.public.everything)
    assert np.array_equal(users.raw.transitions.sum(axis=-1), users.raw.visits)
    assert (users.raw.rewards <= users.raw.visits).all()


def test_a_planner_is_shown_what_was_public_before_its_user_and_nothing_raw(monkeypatch):
    plainly(monkeypatch, kernels)
    noise = np.random.default_rng(5).integers(-9, 9, (3, 32)).astype(float)
    nothing = np.zeros((3, 0))
    randomness = Randomness(
        noise, nothing, np.zeros(0, np.int64), nothing, 1.0, UNIT, SHAPE.horizon
    )
    users, shown = users_of(quarters(), randomness), []

    def note(row, *arrays):
        assert all(a is b for a, b in zip(arrays[:3], users.public[1:], strict=True))
        shown.append((row.tolist(), users.public.everything - users.raw.everything))
        for array in arrays[:-1]:  # the last is the generator
            assert not np.shares_memory(array, users.raw.everything)

    play(users, next_policy(), np.random.default_rng(1), plan=note, count=3)
    assert [row for row, _ in shown] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    for i, (_, difference) in enumerate(shown):
        assert np.array_equal(difference, noise[i - 1] if i else np.zeros(32))
    assert np.array_equal(users.public.everything, users.raw.everything + noise[2])


def test_a_value_is_computed_when_the_policy_changes_and_kept_otherwise(monkeypatch):
    plainly(monkeypatch, kernels)
    mdp, computed = quarters(), []
    exact = kernels.policy_value

    def count(*arguments):
        computed.append(1)
        return exact(*arguments)

    monkeypatch.setattr(kernels, "policy_value", count)
    policy, rounds = next_policy(), iter([0, 0, 1, 1, 1])

    def plan(*arguments):
        policy.actions[1, 0] = next(rounds)

    values = play(users_of(mdp, silent(5)), policy, np.random.default_rng(1), plan=plan, count=5)
    worth = [evaluate(mdp, DeterministicPolicy(np.array([[0, 0], [a, 0]]))) for a in (0, 1)]
    assert values == pytest.approx([worth[0]] * 2 + [worth[1]] * 3)
    assert len(computed) == 2
    assert policy.value[0] == values[-1]  # carried to the next block
