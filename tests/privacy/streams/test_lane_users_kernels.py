"""Users of many runs: answers with exact laws, episodes against plain NumPy, the loop as Python."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet import Local, NoPrivacy
from discreet._seeds import RunSeeds
from discreet.mdp import RandomMDP
from discreet.mdp.counts import Counts
from discreet.privacy.mechanisms._lane_noise import FLIPS, LAPLACE, ONE_STEP, SILENT, TABLE
from discreet.privacy.statistics import flatten
from discreet.privacy.streams import lane_users_kernels as kernels
from discreet.privacy.streams.lane_kernels import add_laplace, draw_table, draw_uniforms
from discreet.privacy.streams.lane_users_kernels import LaneRegret, LaneScratch
from discreet.privacy.streams.lanes import lane_states, lane_users, side_by_side
from helpers.plain_kernels import midpoints, plainly

RUNS, STATES, ACTIONS, HORIZON = 3, 2, 2, 2
PAIRS = STATES * ACTIONS
CELLS = PAIRS * (STATES + 2)
MDPS = [
    RandomMDP(states=STATES, actions=ACTIONS, horizon=HORIZON, seed=s, stationary=True)
    for s in range(RUNS)
]
SEEDS = [RunSeeds(9, run) for run in range(RUNS)]
COMPILED = ("add_laplace", "draw_table", "draw_uniforms")
"""Draws, which have tests of their own."""


def users_of(trust):
    plan = trust.calibrate(MDPS[0].shape, rhythm="stream", episodes=60, stationary=True)
    return lane_users(MDPS, plan, SEEDS)


def counters_of(path):
    """All counters of steps ``(s, a, s', reward bit)``, laid out as a release."""
    transitions = np.zeros((HORIZON, STATES, ACTIONS, STATES), np.int64)
    rewards = np.zeros((HORIZON, STATES, ACTIONS), np.int64)
    for h, (s, a, t, bit) in enumerate(path):
        transitions[h, s, a, t] += 1
        rewards[h, s, a] += bit
    names = ("transitions", "visits", "rewards")
    return flatten(Counts(1, transitions, rewards), names, stationary=True)


def path_of(mdp, uniforms, actions):
    """What a user does with these draws of the environment."""
    s, path = int(uniforms[0] >= mdp.initial[0]), []
    for h in range(HORIZON):
        a = actions[h, s]
        t = int(uniforms[1 + 2 * h] >= mdp.transitions[h, s, a, 0])
        path.append((s, a, t, int(uniforms[2 + 2 * h] < mdp.rewards[h, s, a])))
        s = t
    return path


def lanes_of(seed=0):
    """Draws of the environment and policies, per run."""
    rng = np.random.default_rng(seed)
    return rng.random((2 * HORIZON + 1, RUNS)), rng.integers(0, 2, (HORIZON, STATES, RUNS))


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("share", [Fraction(1, 3), Fraction(1, 10)])
def test_asked_bits_have_exactly_the_law_of_flipping_each_bit(steps, share):
    """A counter of H bits, v of them true: flipped ones drawn first, then asked for one by one."""
    for visits in range(steps + 1):
        plain = Counter()
        for flips in itertools.product((0, 1), repeat=steps):
            chance = math.prod(share if f else 1 - share for f in flips)
            plain[sum((i < visits) != f for i, f in enumerate(flips))] += chance
        asked = Counter()
        parts = 6  # every threshold is a multiple of a sixth
        for drawn in range(steps + 1):
            chance = math.comb(steps, drawn) * share**drawn * (1 - share) ** (steps - drawn)
            for draws in itertools.product(midpoints(parts), repeat=visits):
                flips, before = np.array([[float(drawn)]]), np.zeros((1, 1))
                answers = [kernels._answer.py_func(flips, before, 0, 0, u, steps) for u in draws]
                assert before[0, 0] == visits
                asked[drawn + int(sum(answers))] += chance / parts**visits
        assert asked == plain


def test_an_answer_uses_up_a_flipped_bit():
    flips, asked = np.array([[0.0, 2.0]]), np.zeros((1, 2))
    assert kernels._answer.py_func(flips, asked, 0, 1, 0.0, 2) == -1.0
    assert kernels._answer.py_func(flips, asked, 0, 1, 0.999, 2) == -1.0  # both bits flipped
    assert flips.tolist() == [[0.0, 0.0]]
    assert asked.tolist() == [[0.0, 2.0]]


def test_episodes_are_counted_as_plain_episodes_are(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users, sizes = users_of(NoPrivacy()), (HORIZON, STATES, ACTIONS, RUNS)
    expected = np.zeros((CELLS, RUNS))
    for seed in range(20):
        uniforms, actions = lanes_of(seed)
        flat = uniforms.ravel(), users.cumulative.flat, users.means.flat, users.start.flat
        kernels._play(*flat, actions.ravel(), users.raw.flat, sizes)
        for run, mdp in enumerate(MDPS):
            expected[:, run] += counters_of(path_of(mdp, uniforms[:, run], actions[..., run]))
    assert np.array_equal(users.raw.table, expected)
    assert expected.sum() > 0


def asked_of(users, kind, asks, fresh, uniforms, actions, *, keep=0.5):
    """One episode of answers."""
    kernels._play_asked(
        kind,
        keep,
        uniforms,
        users.cumulative.table,
        users.means.table,
        users.start.table,
        actions,
        asks,
        fresh,
        users.asked,
        users.raw.table,
    )


def test_bits_that_nobody_flipped_tell_the_episode(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users = users_of(Local(2, mechanism="randomized-response"))
    uniforms, actions = lanes_of()
    asks = np.random.default_rng(1).random((3 * HORIZON, RUNS))
    for _ in range(2):
        asked_of(users, FLIPS, asks, np.zeros((CELLS, RUNS)), uniforms, actions)
    for run, mdp in enumerate(MDPS):
        truth = counters_of(path_of(mdp, uniforms[:, run], actions[..., run]))
        assert np.array_equal(users.raw.table[:, run], 2 * truth)
        assert np.array_equal(users.asked[:, run], truth)  # bits of this user, one per unit


def test_bits_that_all_flipped_tell_the_opposite(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users = users_of(Local(2, mechanism="randomized-response"))
    uniforms, actions = lanes_of()
    asks, fresh = np.full((3 * HORIZON, RUNS), 0.99), np.full((CELLS, RUNS), float(HORIZON))
    asked_of(users, FLIPS, asks, fresh, uniforms, actions)
    for run, mdp in enumerate(MDPS):
        truth = counters_of(path_of(mdp, uniforms[:, run], actions[..., run]))
        assert np.array_equal(users.raw.table[:, run], -truth)


@pytest.mark.parametrize("reported", [0, 1])
@pytest.mark.parametrize("kept", [0, 1])
def test_one_step_publishes_the_counters_of_one_report(monkeypatch, reported, kept):
    """False bits counted ahead, and what the step adds: together the bits that a device sends."""
    plainly(monkeypatch, kernels, but=COMPILED)
    users, rng = users_of(Local(2, mechanism="one-step")), np.random.default_rng(2)
    uniforms, actions = lanes_of(3)
    false = rng.integers(0, 2, (2 * PAIRS * STATES, RUNS)).astype(float)
    asks = np.array([[(reported + 0.5) / HORIZON] * RUNS, [0.1 if kept else 0.9] * RUNS])
    asked_of(users, ONE_STEP, asks, false, uniforms, actions)
    for run, mdp in enumerate(MDPS):
        cube = false[:, run].reshape(STATES, ACTIONS, STATES, 2).copy()
        without = [cube.sum(axis=-1), cube.sum(axis=(-2, -1)), cube[..., 1].sum(axis=-1)]
        cube[path_of(mdp, uniforms[:, run], actions[..., run])[reported]] = kept
        sent = [cube.sum(axis=-1), cube.sum(axis=(-2, -1)), cube[..., 1].sum(axis=-1)]
        added = np.concatenate([(b - a).ravel() for a, b in zip(without, sent, strict=True)])
        assert np.array_equal(users.raw.table[:, run], added)


def test_the_chance_of_a_kept_bit_is_the_plans(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    uniforms, actions = lanes_of(3)
    for keep, answer in ((0.25, 0.0), (0.35, 1.0)):
        users = users_of(Local(2, mechanism="one-step"))
        asks, none = np.array([[0.1] * RUNS, [0.3] * RUNS]), np.zeros((16, RUNS))
        asked_of(users, ONE_STEP, asks, none, uniforms, actions, keep=keep)
        assert (users.raw.table[:8].sum(axis=0) == answer).all()


def drawn(users):
    """One episode of noise; the generators before it."""
    before = users.noise_states.copy()
    kind, scale, flip, *_, low, cut, other = users.law
    kernels._draw_noise(
        (kind, scale, flip, low),
        cut,
        other,
        users.noise_states,
        users.fresh.table,
        users.noise.table,
        users.fresh.flat,
        users.noise.flat,
        PAIRS,
    )
    return [np.ascontiguousarray(row) for row in before]


def test_laplace_noise_is_added_to_every_counter(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users, expected = users_of(Local(2, mechanism="laplace")), np.zeros(CELLS * RUNS)
    for _ in range(3):
        add_laplace(*drawn(users), users.law.scale, expected)
    assert users.law.kind == LAPLACE
    assert np.array_equal(users.noise.flat, expected)


@pytest.mark.parametrize(
    ("trust", "kind"),
    [
        (Local(20, 0.1, mechanism="gaussian"), TABLE),
        (Local(2, mechanism="randomized-response"), FLIPS),
    ],
    ids=str,
)
def test_noise_of_a_table_is_added_and_kept_for_the_answers(monkeypatch, trust, kind):
    plainly(monkeypatch, kernels, but=COMPILED)
    users, total, once = users_of(trust), np.zeros(CELLS * RUNS), np.zeros(CELLS * RUNS)
    for _ in range(3):
        draw_table(*drawn(users), users.law.cut, users.law.other, once)
        total += users.law.low + once
        assert np.array_equal(users.fresh.flat, once)
    assert users.law.kind == kind
    assert users.law.low == (0.0 if kind == FLIPS else -(len(users.law.cut) // 2))
    assert np.array_equal(users.noise.flat, total)


def test_false_bits_of_one_step_are_counted_in_their_three_counters(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users, uniforms = users_of(Local(1, mechanism="one-step")), np.zeros(16 * RUNS)
    draw_uniforms(*drawn(users), uniforms)
    false = (uniforms < users.law.flip).reshape(STATES, ACTIONS, STATES, 2, RUNS)
    parts = false.sum(axis=3), false.sum(axis=(2, 3)), false[:, :, :, 1].sum(axis=2)
    assert 0 < false.sum() < false.size
    assert np.array_equal(users.fresh.flat, false.ravel())
    assert np.array_equal(users.noise.flat, np.concatenate([part.ravel() for part in parts]))


def test_silence_draws_nothing(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users = users_of(NoPrivacy())
    drawn(users)
    assert users.law.kind == SILENT
    assert not users.noise.flat.any()


def test_regret_is_that_of_the_policy_whose_digits_the_actions_are():
    of_policy = np.arange(16.0 * RUNS).reshape(16, RUNS)
    totals, actions = np.ones(RUNS), np.zeros((HORIZON, STATES, RUNS), np.int64)
    actions[:, :, 1] = [[0, 1], [1, 0]]
    actions[:, :, 2] = 1
    kernels._add_regret.py_func(of_policy, totals, actions, ACTIONS)
    assert totals.tolist() == [1 + of_policy[0, 0], 1 + of_policy[6, 1], 1 + of_policy[15, 2]]


def test_a_flat_place_is_never_negative():
    table = np.arange(12.0).reshape(4, 3)
    place = kernels._at.py_func(2, 1, 3)
    assert isinstance(place, np.uint64)
    assert table.ravel()[place] == table[2, 1]


def lanes(users, coefficients, plan, *, first=0, points=(1, 3, 5)):
    """The loop in plain Python."""
    scratch = LaneScratch(
        np.zeros((PAIRS, STATES + 2, RUNS)),
        np.zeros((STATES, ACTIONS, RUNS)),
        np.zeros((HORIZON + 1, STATES, RUNS)),
        np.zeros(0),
        lane_states(SEEDS, "policy", 1),
        np.zeros((HORIZON, STATES, RUNS), np.int64),
    )
    regret = LaneRegret(
        side_by_side([np.arange(16.0) * (run + 1) for run in range(RUNS)]),
        np.zeros(RUNS),
        np.array(points),
        np.full((len(points), RUNS), -1.0),
    )
    kernels.run_lanes(plan, coefficients, users, scratch, regret, first)
    return regret


def test_a_planner_is_shown_public_counters_only_and_its_regret_is_recorded(monkeypatch):
    plainly(monkeypatch, kernels, but=COMPILED)
    users, shown = users_of(Local(2, mechanism="laplace")), []

    def plan(row, public, scratch):
        assert public is users.public.table
        for array in scratch:
            assert not np.shares_memory(array, users.raw.table)
        shown.append((row.tolist(), public.copy(), users.raw.table + users.noise.table))
        scratch.actions[:] = len(shown) > 2

    regret = lanes(users, np.arange(4.0).reshape(4, 1), plan)
    assert [row for row, *_ in shown] == [[0.0], [1.0], [2.0], [3.0]]
    assert not shown[0][1].any()
    for _, public, released in shown:
        assert np.array_equal(public, released)
    assert regret.totals.tolist() == [30.0, 60.0, 90.0]  # policy 0 twice, then policy 15 twice
    assert regret.recorded.tolist() == [[0.0] * 3, [15.0, 30.0, 45.0], [-1.0] * 3]


@pytest.mark.parametrize("name", ["randomized-response", "one-step"])
def test_answers_are_debiased_for_all_users_so_far(monkeypatch, name):
    plainly(monkeypatch, kernels, but=COMPILED)
    users = users_of(Local(2, mechanism=name))
    lanes(users, np.zeros((3, 1)), lambda *_: None, first=0)
    lanes(users, np.zeros((2, 1)), lambda *_: None, first=3)
    centres = (users.law.flip * (users.law.bits * 5))[:, None]
    integers = users.raw.table + users.noise.table
    assert np.array_equal(integers, np.rint(integers))
    assert np.array_equal(users.public.table, users.law.unit * (integers - centres))


def test_answers_of_many_users_are_unbiased(monkeypatch):
    """The mean visits of everybody are H per user, within six standard errors."""
    plainly(monkeypatch, kernels, but=COMPILED)
    users, episodes = users_of(Local(40, mechanism="one-step")), 60
    lanes(users, np.zeros((episodes, 1)), lambda *_: None)
    visits = users.public.table[PAIRS * STATES : PAIRS * (STATES + 1)].sum()
    spread = math.sqrt(RUNS * episodes * HORIZON**2)  # a kept bit counts 2H, half of the time
    assert abs(visits - RUNS * episodes * HORIZON) < 6 * spread
