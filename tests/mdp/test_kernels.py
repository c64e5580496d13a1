"""The compiled pieces that learners' kernels are built from."""

import numpy as np
import pytest
from scipy import stats

from discreet.mdp import TabularMDP, _kernels, sample_trajectories, uniform_policy
from discreet.mdp._arrays import cumulative_rows

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
    exact = stats.multinomial(total, probabilities[probabilities > 0])
    outcomes = [(a, 0, b, total - a - b) for a in range(4) for b in range(4 - a)]
    expected = [batches * exact.pmf([a, b, c]) for a, _, b, c in outcomes]
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
    always_one = np.broadcast_to([0.0, 1.0], mdp.shape.visits)
    episode = sample_trajectories(mdp, always_one, 1, np.random.default_rng(0))
    assert episode.actions.tolist() == [[1, 1]]
    assert episode.states.tolist() == [[0, 1, 2]]
    assert episode.rewards.tolist() == [[1, 1]]


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
    mdp = TabularMDP(transitions=[[[0.25, 0.75]], [[1.0, 0.0]]], rewards=[[0.3], [0.0]], horizon=1)
    episodes = sample_trajectories(mdp, [[0, 0]], 20_000, rng)
    ahead, bits = episodes.states[:, 1], episodes.rewards[:, 0]
    table = np.array([[((ahead == s) & (bits == b)).sum() for b in (0, 1)] for s in (0, 1)])
    expected = 20_000 * np.outer([0.25, 0.75], [0.7, 0.3])
    assert stats.chisquare(table.ravel(), expected.ravel()).pvalue > FALSE_ALARM


def in_the_order_of_states(mdp, rewards, chosen=None):
    """Backward induction as in a book: the best values, or those of a policy."""
    values = np.zeros((mdp.horizon + 1, mdp.shape.states))
    for h in reversed(range(mdp.horizon)):
        means = np.zeros(mdp.shape.visits[1:])
        for y, value in enumerate(values[h + 1]):
            means += mdp.transitions[h, ..., y] * value
        q = rewards[h] + means
        if chosen is None:
            values[h] = q.max(axis=1)
        else:
            for a in range(mdp.shape.actions):
                values[h] += chosen[h, :, a] * q[:, a]
    return values


@pytest.mark.parametrize("zeros", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("states", [*range(1, 10), 37])
def test_rows_are_summed_in_the_order_of_states_across_and_one_by_one(states, steps, zeros):
    rng = np.random.default_rng(states)
    rows = rng.dirichlet(np.ones(states), size=(steps, states, 5))
    rows[rng.random(rows.shape) < zeros] = 0
    rows[..., 0] += 1 - rows.sum(axis=-1)
    moves = rows if steps > 1 else rows[0]
    mdp = TabularMDP(transitions=moves, rewards=rng.random((3, states, 5)))
    found = mdp.rows
    assert len(found.entries) == (rows > 0).sum()
    lines = mdp.step_transitions.reshape(steps, 5 * states, states)
    across = np.ascontiguousarray(lines.transpose(0, 2, 1))
    assert found.across.size == (across.size if 2 * len(found.entries) > across.size else 0)
    chosen = rng.dirichlet(np.full(5, 0.4), size=(3, states))
    chosen[0, :, 1] = 0
    expected = in_the_order_of_states(mdp, mdp.full_rewards)
    for layout in (across, across[:0]):
        same = found._replace(across=layout)
        values, best = _kernels.maximise(same, mdp.full_rewards)
        np.testing.assert_array_equal(values, expected)
        alone = np.eye(5)[best]
        np.testing.assert_array_equal(_kernels.evaluate(same, mdp.full_rewards, alone), expected)
        np.testing.assert_array_equal(
            _kernels.evaluate(same, mdp.full_rewards, chosen),
            in_the_order_of_states(mdp, mdp.full_rewards, chosen),
        )


def test_unwanted_rows_are_left_alone_where_rows_are_sparse():
    mdp = TabularMDP(transitions=np.eye(4)[:, None, :], rewards=np.zeros((4, 1)), horizon=1)
    means = np.full(4, np.nan)
    _kernels.expected(mdp.rows, 0, np.arange(4.0), np.array([0, 0.5, 0, 1]), means)
    np.testing.assert_array_equal(means, [np.nan, 1, np.nan, 3])
