"""The compiled pieces that learners' kernels are built from."""

import numpy as np
import pytest
from scipy import stats

from discreet.mdp import TabularMDP, _kernels, occupancy, sample_trajectories, uniform_policy
from discreet.mdp._arrays import cumulative_rows
from discreet.mdp.tabular import SparseRows

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


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("states", [24, 25, 30, 31])
def test_dense_rows_side_by_side_are_summed_like_single_ones(states, steps, zeros):
    """Groups of four rows and a part of one; remainders modulo eight; a repeated row."""
    rng = np.random.default_rng(states)
    rows = rng.dirichlet(np.ones(states), size=(steps, states, 5))
    rows[0, 3, 1] = rows[0, 7, 2]
    if zeros:
        rows[..., 4] += rows[..., 2]
        rows[..., 2] = 0
    mdp = TabularMDP(transitions=rows, rewards=rng.random((steps, states, 5)), horizon=None)
    assert mdp.rows.dense.shape == (5 * steps * states - 1, states)
    assert np.shares_memory(mdp.rows.dense, mdp.rows.entries) is not zeros
    sparse = mdp.rows._replace(dense=mdp.rows.dense[:0])
    values, best = _kernels.maximise(mdp.rows, mdp.full_rewards)
    alone, same = _kernels.maximise(sparse, mdp.full_rewards)
    np.testing.assert_allclose(values, alone, rtol=1e-13)
    np.testing.assert_array_equal(best, same)
    chosen = uniform_policy(mdp.shape).probabilities
    for kernel, *arguments in (
        (_kernels.evaluate_probabilities, mdp.full_rewards, chosen),
        (_kernels.evaluate_actions, mdp.full_rewards, best),
        (_kernels.occupancies, mdp.initial, chosen),
    ):
        np.testing.assert_allclose(
            kernel(mdp.rows, *arguments), kernel(sparse, *arguments), rtol=1e-13
        )


def in_the_order_written_down(row, values):
    products = row * values
    whole = len(row) - len(row) % 8
    eight = np.zeros(8)
    for i in range(0, whole, 8):
        eight += products[i : i + 8]
    four, rest = eight[:4] + eight[4:], products[whole:]
    if len(rest) >= 4:
        four, rest = four + rest[:4], rest[4:]
    total = (four[0] + four[1]) + (four[2] + four[3])
    for product in rest:
        total += product
    return total


@pytest.mark.parametrize("states", [*range(1, 19), 37, 200])
def test_a_row_is_summed_in_one_order_whatever_stands_beside_it(states):
    rng = np.random.default_rng(states)
    dense, values = rng.random((7, states)), rng.normal(size=states)
    empty = np.zeros(0, np.int64)
    rows = SparseRows(empty, empty, empty, empty.astype(np.int32), np.zeros(0), dense)
    expected = [in_the_order_written_down(row, values) for row in dense]
    for count in range(8):
        wanted, means = rng.permutation(7)[:count], np.full(7, np.nan)
        _kernels.mean_values(rows, wanted, values, means)
        np.testing.assert_array_equal(means[wanted], np.array(expected)[wanted])
        assert np.isnan(means).sum() == 7 - count


def test_only_dense_problems_with_many_rows_keep_their_zeros():
    rng = np.random.default_rng(0)
    few = rng.dirichlet(np.ones(8), size=(8, 2))
    assert TabularMDP(transitions=few, rewards=np.zeros((8, 2)), horizon=2).rows.dense.size == 0
    wide = np.zeros((70, 2, 70))
    wide[..., :20] = rng.dirichlet(np.ones(20), size=(70, 2))
    made = TabularMDP(transitions=wide, rewards=np.zeros((70, 2)), horizon=2)
    assert made.rows.dense.size == 0


def reading_all_rows(mdp, rewards):
    """Value iteration that leaves no row unread."""
    horizon, states, _ = rewards.shape
    values, best = np.zeros((horizon + 1, states)), np.zeros((horizon, states), np.int64)
    every, means = np.arange(mdp.rows.steps[-1]), np.zeros(mdp.rows.steps[-1])
    for h in reversed(range(horizon)):
        _kernels.mean_values(mdp.rows, every, values[h + 1], means)
        q = rewards[h] + means[mdp.rows.numbers[h if len(mdp.rows.numbers) > 1 else 0]]
        values[h], best[h] = q.max(axis=1), q.argmax(axis=1)
    return values, best


def problems():
    """Where bounds decide much, little, or wrongly if they were careless."""
    rng, states, actions, horizon = np.random.default_rng(5), 80, 4, 25
    rows = rng.dirichlet(np.ones(states), size=(states, actions))
    slow = 0.9 * np.eye(states)[:, None, :] + 0.1 * rows
    gains = rng.random((states, actions))
    yield "mixes fast", rows, gains
    yield "mixes slowly", slow, np.repeat(gains[:, :1], actions, axis=1)
    alike = np.repeat(rows[:, :1], actions, axis=1)
    yield "all actions alike", alike, np.repeat(gains[:, :1], actions, axis=1)
    yield "a hair apart", alike, gains[:, :1] * 0.5 + 1e-16 * rng.integers(0, 8, (states, actions))
    yield "rows miss one", rows * (1 + 9e-13 * rng.choice([-1, 1], (states, actions, 1))), gains
    more = np.stack([rows[:, 0], rows[:, 1] * (1 + 9e-13)], axis=1)
    yield "rows that win by what they miss", more, np.full((states, 2), [0.5, 0.5 - 5e-12])
    yield "pays seldom", slow, (rng.random((horizon, states, actions)) < 0.01).astype(float)
    yield "other rewards", rows, rng.random((horizon, states, actions)) ** 8
    yield "other rows", rng.dirichlet(np.ones(states), size=(3, states, actions)), gains
    yield "sparse", slow * (rng.random(slow.shape) < 0.9) + 1e-3 * np.eye(states)[:, None], gains


@pytest.mark.parametrize("scale", [1.0, -1e6])
@pytest.mark.parametrize("name", [name for name, *_ in problems()])
def test_rows_that_are_left_unread_change_nothing(name, scale):
    rows, gains = {name: given for name, *given in problems()}[name]
    rows = rows / rows.sum(axis=-1, keepdims=True) if name == "sparse" else rows
    steps = {len(array) for array, axes in ((rows, 4), (gains, 3)) if array.ndim == axes}
    mdp = TabularMDP(transitions=rows, rewards=gains, horizon=None if steps else 25)
    if name == "rows miss one":
        assert np.ptp(mdp.transitions.sum(axis=-1)) > 1e-12
    rewards = scale * mdp.full_rewards
    values, best = _kernels.maximise(mdp.rows, rewards)
    expected, first = reading_all_rows(mdp, rewards)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(best, first)


def test_most_rows_are_left_unread_where_values_settle():
    """Bounds after a step in which all values rose by about as much."""
    rng = np.random.default_rng(0)
    numbers, gains = np.arange(400), rng.random((100, 4))
    known = rng.random(400)
    means = _kernels.Means(known, np.zeros(400, np.int64), known - 0.5, known - 0.5)
    exact = _kernels.possible_actions(numbers, gains, means, (0.5, 0.5), 0.0)
    np.testing.assert_array_equal(exact % 4, (gains + known.reshape(100, 4)).argmax(axis=1))
    wide = _kernels.possible_actions(numbers, gains, means, (0.4, 0.6), 0.0)
    reach = (gains + known.reshape(100, 4)).max(axis=1, keepdims=True) - 0.2
    np.testing.assert_array_equal(wide, np.flatnonzero(gains + known.reshape(100, 4) > reach))
    assert (
        100
        < len(wide)
        < len(_kernels.possible_actions(numbers, gains, means, (0.4, 0.6), 1.0))
        <= 400
    )


def test_numbers_without_end_leave_no_row_unread():
    """Where bounds overflow, nothing is known; the sums are what they are."""
    rng = np.random.default_rng(0)
    rows, gains = rng.dirichlet(np.ones(70), size=(70, 3)), rng.random((70, 3))
    mdp = TabularMDP(transitions=rows, rewards=gains, horizon=4)
    rewards = 1e308 * mdp.full_rewards
    values, best = _kernels.maximise(mdp.rows, rewards)
    with np.errstate(over="ignore"):
        expected, first = reading_all_rows(mdp, rewards)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(best, first)


def test_numbers_that_round_by_as_much_as_they_are_leave_no_row_unread():
    """Products of the smallest doubles vanish: a mean can fall behind its bounds."""
    rng, states = np.random.default_rng(0), 200
    rows = rng.dirichlet(np.full(states, 1e4), size=(states, 4))
    rows[:, 1] = np.eye(states)
    gains = np.broadcast_to(5e-324 * np.array([2, 1, 0, 0]), (states, 4))
    mdp = TabularMDP(transitions=rows, rewards=gains, horizon=3)
    values, best = _kernels.maximise(mdp.rows, mdp.full_rewards)
    expected, first = reading_all_rows(mdp, mdp.full_rewards)
    assert first[0].tolist() == [1] * states
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(best, first)
