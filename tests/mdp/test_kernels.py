"""The compiled pieces that learners' kernels are built from."""

import numpy as np
import pytest
from scipy import stats

from discreet.mdp import TabularMDP, _kernels, occupancy, uniform_policy
from discreet.mdp._arrays import cumulative_rows
from discreet.mdp.tabular import SIDE_BY_SIDE

FALSE_ALARM = 1e-7


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_draw_finds_the_first_cumulative_probability_above(size):
    rng = np.random.default_rng(size)
    row = rng.dirichlet(np.full(size, 0.3))
    row[rng.random(size) < 0.3] = 0
    row[size // 2] += 1 - row.sum()
    cumulative = cumulative_rows(row)
    edges = np.concatenate([[0.0], cumulative[cumulative < 1], rng.random(200)])
    for uniform in np.append(edges, np.nextafter(1, 0)):
        expected = int(np.searchsorted(cumulative, uniform, side="right"))
        assert _kernels.draw(cumulative, uniform) == expected
        assert row[expected] > 0


def split(total, probabilities, seed):
    parts = np.zeros(len(probabilities), np.int64)
    _kernels.split(total, np.asarray(probabilities, float), np.random.default_rng(seed), parts)
    return parts


@pytest.mark.parametrize("total", [0, 1, 17, 10**6, 10**12, 10**18])
@pytest.mark.parametrize(
    "probabilities", [[1.0], [0.0, 1.0, 0.0], [0.7, 0.2, 0.1, 0.0], [1e-12, 1 - 1e-12], [0.1] * 10]
)
def test_a_split_loses_nobody_and_visits_nothing_impossible(total, probabilities):
    for seed in range(20):
        parts = split(total, probabilities, seed)
        assert parts.sum() == total
        assert (parts >= 0).all()
        assert not parts[np.array(probabilities) == 0].any()


def test_a_split_is_multinomial():
    probabilities, total, batches = np.array([0.5, 0.0, 0.2, 0.3]), 3, 20_000
    rng = np.random.default_rng(1)
    seen = {}
    for _ in range(batches):
        parts = np.zeros(4, np.int64)
        _kernels.split(total, probabilities, rng, parts)
        seen[tuple(parts.tolist())] = seen.get(tuple(parts.tolist()), 0) + 1
    law = stats.multinomial(total, probabilities[probabilities > 0])
    outcomes = [(a, 0, b, total - a - b) for a in range(4) for b in range(4 - a)]
    expected = [batches * law.pmf([a, b, c]) for a, _, b, c in outcomes]
    observed = [seen.pop(outcome, 0) for outcome in outcomes]
    assert not seen
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_a_split_adds_to_what_is_there():
    parts = np.array([5, 5], np.int64)
    _kernels.split(3, np.array([0.0, 1.0]), np.random.default_rng(0), parts)
    assert parts.tolist() == [5, 8]


def two_step_mdp():
    """Step 0 goes to state 1, step 1 to state 2, whatever the action; each step pays once."""
    moves = np.zeros((2, 3, 2, 3))
    moves[0, ..., 1] = moves[1, ..., 2] = 1
    rewards = np.zeros((2, 3, 2))
    rewards[0, 0] = rewards[1, 1] = 1
    return TabularMDP(transitions=moves, rewards=rewards)


def test_episodes_use_the_rows_of_their_step():
    mdp = two_step_mdp()
    states, actions, bits = np.zeros(3, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    always_one = np.broadcast_to([0.0, 1.0], mdp.shape.visits)
    rng = np.random.default_rng(0)
    _kernels.run_probabilities(
        mdp.tables, cumulative_rows(always_one), rng, (states, actions, bits)
    )
    assert actions.tolist() == [1, 1]
    assert states.tolist() == [0, 1, 2]
    assert bits.tolist() == [1, 1]


def test_the_flow_uses_the_rows_of_its_step():
    mdp = two_step_mdp()
    transitions = np.zeros(mdp.shape.transitions, np.int64)
    rewards = np.zeros(mdp.shape.visits, np.int64)
    model = (mdp.rows, mdp.initial, mdp.full_rewards)
    chosen = uniform_policy(mdp.shape).probabilities
    numbers = np.arange(rewards.size).reshape(rewards.shape)
    rows = (numbers, transitions.reshape(rewards.size, -1), rewards.ravel())
    _kernels.flow(model, chosen, 1000, np.random.default_rng(0), rows)
    assert transitions[0, 0, :, 1].sum() == transitions[1, 1, :, 2].sum() == 1000
    assert transitions.sum() == 2000
    np.testing.assert_array_equal(rewards, transitions.sum(axis=-1))


def test_a_step_pays_with_its_mean_and_moves_by_its_row():
    rng = np.random.default_rng(3)
    mdp = TabularMDP(transitions=[[[0.25, 0.75]], [[1.0, 0.0]]], rewards=[[0.3], [0.0]], horizon=2)
    steps = [_kernels.take_step(mdp.tables, 1, 0, 0, rng) for _ in range(20_000)]
    ahead, bits = np.array(steps).T
    table = np.array([[((ahead == s) & (bits == b)).sum() for b in (0, 1)] for s in (0, 1)])
    expected = 20_000 * np.outer([0.25, 0.75], [0.7, 0.3])
    assert stats.chisquare(table.ravel(), expected.ravel()).pvalue > FALSE_ALARM


def test_long_rows_are_summed_exactly_like_short_ones():
    """The unrolled sum has a remainder for every length modulo four."""
    for states in range(1, 14):
        rng = np.random.default_rng(states)
        rows = rng.dirichlet(np.ones(states), size=(states, 2))
        mdp = TabularMDP(transitions=rows, rewards=rng.random((states, 2)), horizon=3)
        values, _ = _kernels.maximise(mdp.rows, mdp.full_rewards)
        expected = np.zeros(states)
        for h in (2, 1, 0):
            expected = (mdp.rewards[h] + rows @ expected).max(axis=1)
        np.testing.assert_allclose(values[0], expected, rtol=1e-13)
        measure = occupancy(mdp, uniform_policy(mdp.shape))
        np.testing.assert_allclose(measure.sum(axis=(1, 2)), 1)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("states", [24, 25, 30, 31])
def test_dense_rows_side_by_side_are_summed_like_single_ones(states, steps):
    """Whole tiles and a part of one; remainders modulo eight; a repeated row in one step."""
    rng = np.random.default_rng(states)
    rows = rng.dirichlet(np.ones(states), size=(steps, states, 5))
    rows[0, 3, 1] = rows[0, 7, 2]
    mdp = TabularMDP(transitions=rows, rewards=rng.random((steps, states, 5)), horizon=None)
    blocks = -(-(5 * states - (steps == 1)) // SIDE_BY_SIDE)
    assert mdp.rows.tiles.shape == (steps, blocks, states, SIDE_BY_SIDE)
    values, best = _kernels.maximise(mdp.rows, mdp.full_rewards)
    sparse = mdp.rows._replace(tiles=mdp.rows.tiles[:0])
    alone, same = _kernels.maximise(sparse, mdp.full_rewards)
    np.testing.assert_allclose(values, alone, rtol=1e-13)
    np.testing.assert_array_equal(best, same)
    chosen = uniform_policy(mdp.shape).probabilities
    np.testing.assert_allclose(
        _kernels.evaluate_probabilities(mdp.rows, mdp.full_rewards, chosen),
        _kernels.evaluate_probabilities(sparse, mdp.full_rewards, chosen),
        rtol=1e-13,
    )


def test_a_row_is_summed_in_the_same_order_whatever_stands_beside_it():
    rng = np.random.default_rng(1)
    tile = rng.random((1, 37, SIDE_BY_SIDE))
    values = rng.random(37)
    whole = _kernels._side_by_side(tile, values)
    for width in (1, 3, 8, 17):
        part = np.ascontiguousarray(tile[:, :, :width])
        np.testing.assert_array_equal(_kernels._side_by_side(part, values), whole[:width])


def test_only_dense_problems_that_fill_a_tile_have_one():
    rng = np.random.default_rng(0)
    few = rng.dirichlet(np.ones(8), size=(8, 2))
    assert TabularMDP(transitions=few, rewards=np.zeros((8, 2)), horizon=2).rows.tiles.size == 0
    wide = np.zeros((70, 2, 70))
    wide[..., :20] = rng.dirichlet(np.ones(20), size=(70, 2))
    made = TabularMDP(transitions=wide, rewards=np.zeros((70, 2)), horizon=2)
    assert made.rows.tiles.size == 0
