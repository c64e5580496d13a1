"""The entropy solver: blocks against a plain search, solutions by their certificate."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq

from discreet.adversarial import entropy as kernels
from discreet.adversarial.entropy import (
    LINEAR_RANGE,
    empty_columns,
    entropy_state,
    fill_columns,
    solve_entropy,
)
from helpers.boxes import confidence_boxes, entropy_ftrl, row_major
from helpers.layers import random_boxes

LAYERS = (1, 3, 4, 1)
CHOICES = 2


def filled(seed, radius):
    _, boxes = random_boxes(seed, LAYERS, CHOICES, radius)
    columns = empty_columns(len(LAYERS) - 1, max(LAYERS), CHOICES)
    fill_columns(boxes, columns)
    return boxes, columns


def solved(h, potentials, columns, scales=None):
    """Transitions ``[y, column]``, gains and scales of one layer."""
    horizon, width, blocks = columns.lower.shape
    p, gains = np.zeros((horizon, width, blocks)), np.zeros((horizon, blocks))
    scales = np.zeros((horizon, blocks)) if scales is None else scales
    n, pairs = LAYERS[h + 1], LAYERS[h] * CHOICES
    found = kernels.Solution(scales, p, gains)
    kernels.solve_layer(h, potentials, n, pairs, columns, found)
    return p[h, :n, :pairs], gains[h, :pairs], scales


def by_search(nu, lower, upper):
    """clip(e^(nu - m)·t, lower, upper) that sums to one, and sum p·(nu - ln p)."""

    def shares(level):
        return np.clip(np.exp(np.minimum(nu - level, 700.0)), lower, upper)

    level = brentq(lambda m: shares(m).sum() - 1.0, nu.min() - 50, nu.max() + 50, xtol=1e-14)
    p = shares(level)
    positive = p > 0
    return p, float((p[positive] * (nu[positive] - np.log(p[positive]))).sum())


def test_columns_are_the_boxes_transposed_with_their_entropies():
    boxes, columns = filled(0, 0.2)
    for h in range(3):
        for x in range(LAYERS[h]):
            for a in range(CHOICES):
                column = x * CHOICES + a
                low = boxes.lower[h, x, a, : LAYERS[h + 1]]
                assert np.array_equal(columns.lower[h, : LAYERS[h + 1], column], low)
                plain = np.where(low > 0, low * np.log(np.where(low > 0, low, 1.0)), 0.0)
                np.testing.assert_allclose(
                    columns.lower_entropy[h, : LAYERS[h + 1], column], plain, rtol=1e-14
                )


@pytest.mark.parametrize("radius", [0.02, 0.15, 1.0])
@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("h", [0, 1])
def test_transitions_and_gains_are_those_of_a_search(h, spread, radius):
    boxes, columns = filled(1, radius)
    nu = spread * np.random.default_rng(2).normal(size=(4, 4))
    p, gains, _ = solved(h, nu, columns)
    n = LAYERS[h + 1]
    for x in range(LAYERS[h]):
        for a in range(CHOICES):
            low, high = boxes.lower[h, x, a, :n], boxes.upper[h, x, a, :n]
            expected, gain = by_search(nu[h + 1, :n], low, high)
            np.testing.assert_allclose(p[:, x * CHOICES + a], expected, atol=1e-9)
            assert gains[x * CHOICES + a] == pytest.approx(gain, abs=1e-8)


def test_open_boxes_give_a_softmax_and_its_logarithm():
    columns = empty_columns(3, 4, CHOICES)
    columns.upper[:] = 1.0
    nu = np.random.default_rng(3).normal(size=(4, 4))
    p, gains, _ = solved(1, nu, columns)
    weights = np.exp(nu[2])
    np.testing.assert_allclose(p[:, 0], weights / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(gains, np.log(weights.sum()), rtol=1e-12)


def test_a_single_successor_is_certain_and_worth_its_potential():
    _, columns = filled(4, 0.1)
    nu = np.full((4, 4), 2.5)
    p, gains, _ = solved(2, nu, columns)
    assert (p == 1.0).all()
    assert (gains == 2.5).all()


def test_potentials_too_far_apart_for_plain_weights_are_solved_all_the_same():
    """Beyond e^600 the mass goes to the best entries up to their upper bounds."""
    boxes, columns = filled(5, 0.1)
    nu = np.zeros((4, 4))
    nu[2] = [0.0, -3 * LINEAR_RANGE, 2 * LINEAR_RANGE, -LINEAR_RANGE]
    p, gains, scales = solved(1, nu, columns)
    assert not scales[1, : 3 * CHOICES].any()
    order = np.argsort(-nu[2])
    for x in range(3):
        for a in range(CHOICES):
            low, high = boxes.lower[1, x, a], boxes.upper[1, x, a]
            expected, left = low.copy(), 1.0 - low.sum()
            for y in order:
                more = min(left, high[y] - low[y])
                expected[y] += more
                left -= more
            np.testing.assert_allclose(p[:, x * CHOICES + a], expected, atol=1e-9)
            positive = expected > 0
            gain = (expected[positive] * (nu[2][positive] - np.log(expected[positive]))).sum()
            assert gains[x * CHOICES + a] == pytest.approx(gain, rel=1e-9)


def test_a_warm_start_changes_nothing_but_the_way():
    _, columns = filled(6, 0.15)
    nu = np.random.default_rng(6).normal(size=(4, 4))
    cold, gains, scales = solved(1, nu, columns)
    for start in (scales, 1e6 * scales, 1e-6 * scales):
        warm, again, _ = solved(1, nu, columns, start.copy())
        np.testing.assert_allclose(warm, cold, atol=1e-12)
        np.testing.assert_allclose(again, gains, atol=1e-11)


def test_a_constant_added_to_the_potentials_is_added_to_the_gains():
    _, columns = filled(7, 0.15)
    nu = np.random.default_rng(7).normal(size=(4, 4))
    p, gains, _ = solved(1, nu, columns)
    moved, higher, _ = solved(1, nu + 3.0, columns)
    np.testing.assert_allclose(moved, p, atol=1e-12)
    np.testing.assert_allclose(higher, gains + 3.0, atol=1e-10)


@pytest.mark.parametrize("start", [1e-8, 1.0, 1e8])
def test_one_block_finds_its_scale_from_anywhere(start):
    rng = np.random.default_rng(8)
    weights, p = rng.random(5) + 0.01, rng.dirichlet(np.ones(5))
    lower = np.maximum(p - 0.1, 0.0).reshape(1, 5, 1)
    upper = np.minimum(p + 0.1, 1.0).reshape(1, 5, 1)
    t = kernels.box_scale(0, weights, lower, upper, 0, 5, start)
    assert np.clip(t * weights, lower[0, :, 0], upper[0, :, 0]).sum() == pytest.approx(1.0)


def test_breakpoints_are_the_nearest_in_their_direction():
    weights = np.array([1.0, 2.0])
    lower, upper = np.array([0.1, 0.2]).reshape(1, 2, 1), np.array([0.6, 0.8]).reshape(1, 2, 1)
    # entries leave their bounds at t = 0.1 and 0.1, and meet the upper ones at 0.6 and 0.4
    up = kernels.next_breakpoint(0, weights, lower, upper, 0, 2, 0.3, True)
    down = kernels.next_breakpoint(0, weights, lower, upper, 0, 2, 0.3, False)
    assert up == pytest.approx(0.4, rel=1e-9)
    assert up > 0.4
    assert down == pytest.approx(0.1, rel=1e-9)
    assert down < 0.1


WIDTHS = (1, 3, 4, 2, 1)
ACTIONS = 3


def distributions(rng, concentration=0.5):
    """Random transitions ``[H, X, A, X']``, zero in the padding."""
    width = max(WIDTHS)
    p = np.zeros((len(WIDTHS) - 1, width, ACTIONS, width))
    for h, (here, ahead) in enumerate(pairwise(WIDTHS)):
        rows = rng.dirichlet(np.full(ahead, concentration), (here, ACTIONS))
        p[h, :here, :, :ahead] = rows / rows.sum(-1, keepdims=True)
    return p


def boxes_around(p, radius):
    return confidence_boxes(WIDTHS, np.maximum(p - radius, 0), np.minimum(p + radius, 1))


def layers(boxes):
    for h, (here, ahead) in enumerate(pairwise(WIDTHS)):
        yield h, boxes.lower[h, :here, :, :ahead], boxes.upper[h, :here, :, :ahead]


def certified(costs, boxes):
    """Its duality gap says that it is the optimum, if it is feasible."""
    state = entropy_state(boxes.widths, ACTIONS)
    gap, _ = solve_entropy(costs.copy(), boxes, state, False)
    assert gap < 1e-6
    for h, lower, upper in layers(boxes):
        moves = row_major(state)[h, : WIDTHS[h], :, : WIDTHS[h + 1]]
        np.testing.assert_allclose(moves.sum(-1), 1, atol=1e-12)
        np.testing.assert_allclose(state.policy[h, : WIDTHS[h]].sum(-1), 1, atol=1e-12)
        assert (moves >= lower).all() and (moves <= upper).all()
    return state


@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_solutions_are_certified_on_random_boxes(radius, scale):
    rng = np.random.default_rng([int(1000 * radius), int(scale)])
    for concentration in (0.2, 2.0):
        boxes = boxes_around(distributions(rng, concentration), radius)
        certified(scale * rng.standard_normal(boxes.lower.shape[:3]), boxes)


@pytest.mark.core
def test_zero_width_boxes_leave_only_the_policy():
    rng = np.random.default_rng(0)
    p = distributions(rng)
    boxes = boxes_around(p, 0.0)
    state = certified(3 * rng.standard_normal(p.shape[:3]), boxes)
    np.testing.assert_array_equal(row_major(state)[:, :, :, :1], p[:, :, :, :1])


@pytest.mark.core
def test_some_entries_fixed_some_free():
    rng = np.random.default_rng(1)
    p = distributions(rng, 2.0)
    radius = np.where(rng.random(p.shape) < 0.5, 0.0, 0.4)
    certified(5 * rng.standard_normal(p.shape[:3]), boxes_around(p, radius))


@pytest.mark.core
def test_states_that_nothing_reaches_still_get_a_policy():
    rng = np.random.default_rng(2)
    p = distributions(rng)
    upper = np.minimum(p + 0.2, 1)
    lower = np.maximum(p - 0.2, 0)
    for h in (0, 1):  # nobody enters state 1 of the two middle layers
        lower[h, :, :, 1] = upper[h, :, :, 1] = 0.0
        upper[h, :, :, 0] = 1.0
    boxes = confidence_boxes(WIDTHS, lower, upper)
    state = certified(4 * rng.standard_normal(p.shape[:3]), boxes)
    assert row_major(state)[0, 0, :, 1].max() == 0.0
    np.testing.assert_allclose(state.policy[1, 1].sum(), 1)
    assert (state.policy[1, 1] > 0).all()


@pytest.mark.core
def test_a_constant_per_layer_changes_nothing():
    rng = np.random.default_rng(3)
    boxes = boxes_around(distributions(rng), 0.1)
    costs = rng.standard_normal(boxes.lower.shape[:3])
    shifted = costs + rng.integers(-50, 50, 4)[:, None, None]
    one, two = entropy_ftrl(costs, boxes), entropy_ftrl(shifted, boxes)
    np.testing.assert_allclose(two.occupancy, one.occupancy, atol=1e-9)
    free, same = entropy_ftrl(0 * costs, boxes), entropy_ftrl(0 * costs + 7.0, boxes)
    np.testing.assert_array_equal(same.policy, free.policy)


def optimistic_cost(costs, boxes):
    """The least expected cost over policies and transitions in the boxes (extended induction)."""
    ahead_values = np.zeros(1)
    for h, lower, upper in reversed(list(layers(boxes))):
        order = np.argsort(ahead_values)
        p, spare = lower.copy(), 1 - lower.sum(-1)
        for y in order:
            extra = np.minimum(spare, (upper - lower)[..., y])
            p[..., y] += extra
            spare -= extra
        ahead_values = (costs[h, : WIDTHS[h]] + p @ ahead_values).min(-1)
    return float(ahead_values[0])


@pytest.mark.parametrize("scale", [10.0, 1e4, 1e6, 1e9])
def test_huge_rates_find_the_linear_optimum(scale):
    """<c, q> exceeds its minimum by at most the entropy of the layers."""
    rng = np.random.default_rng(4)
    boxes = boxes_around(distributions(rng), 0.15)
    costs = scale * rng.random(boxes.lower.shape[:3])
    found = entropy_ftrl(costs, boxes)
    pairs = found.occupancy.sum(-1)
    sizes = [here * ACTIONS * ahead for here, ahead in pairwise(WIDTHS)]
    excess = (costs * pairs).sum() - optimistic_cost(costs, boxes)
    assert -1e-9 * scale <= excess <= np.log(sizes).sum() + 1e-9 * scale
    assert found.gap <= 1e-9 + 1e-14 * scale


@pytest.mark.core
def test_one_state_per_layer_is_a_softmax():
    boxes = confidence_boxes([1, 1, 1], np.ones((2, 1, 4, 1)), np.ones((2, 1, 4, 1)))
    costs = np.random.default_rng(5).standard_normal((2, 1, 4))
    expected = np.exp(-costs) / np.exp(-costs).sum(-1, keepdims=True)
    np.testing.assert_allclose(entropy_ftrl(costs, boxes).policy, expected, atol=1e-12)
