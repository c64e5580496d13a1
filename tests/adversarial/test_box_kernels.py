"""The inner problem of entropy FTRL: best transitions of all blocks against a plain search."""

import numpy as np
import pytest
from scipy.optimize import brentq

from discreet.adversarial import entropy as kernels
from discreet.adversarial.entropy import LINEAR_RANGE, empty_columns, fill_columns
from helpers.layers import random_boxes

WIDTHS = (1, 3, 4, 1)
ACTIONS = 2


def filled(seed, radius):
    _, boxes = random_boxes(seed, WIDTHS, ACTIONS, radius)
    columns = empty_columns(len(WIDTHS) - 1, max(WIDTHS), ACTIONS)
    fill_columns(boxes, columns)
    return boxes, columns


def solved(h, potentials, columns, scales=None):
    """Transitions ``[y, column]``, gains and scales of one layer."""
    horizon, width, blocks = columns.lower.shape
    p, gains = np.zeros((horizon, width, blocks)), np.zeros((horizon, blocks))
    scales = np.zeros((horizon, blocks)) if scales is None else scales
    n, pairs = WIDTHS[h + 1], WIDTHS[h] * ACTIONS
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
        for x in range(WIDTHS[h]):
            for a in range(ACTIONS):
                column = x * ACTIONS + a
                low = boxes.lower[h, x, a, : WIDTHS[h + 1]]
                assert np.array_equal(columns.lower[h, : WIDTHS[h + 1], column], low)
                plain = np.where(low > 0, low * np.log(np.where(low > 0, low, 1.0)), 0.0)
                np.testing.assert_allclose(
                    columns.lower_entropy[h, : WIDTHS[h + 1], column], plain, rtol=1e-14
                )


@pytest.mark.parametrize("radius", [0.02, 0.15, 1.0])
@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("h", [0, 1])
def test_transitions_and_gains_are_those_of_a_search(h, spread, radius):
    boxes, columns = filled(1, radius)
    nu = spread * np.random.default_rng(2).normal(size=(4, 4))
    p, gains, _ = solved(h, nu, columns)
    n = WIDTHS[h + 1]
    for x in range(WIDTHS[h]):
        for a in range(ACTIONS):
            low, high = boxes.lower[h, x, a, :n], boxes.upper[h, x, a, :n]
            expected, gain = by_search(nu[h + 1, :n], low, high)
            np.testing.assert_allclose(p[:, x * ACTIONS + a], expected, atol=1e-9)
            assert gains[x * ACTIONS + a] == pytest.approx(gain, abs=1e-8)


def test_open_boxes_give_a_softmax_and_its_logarithm():
    columns = empty_columns(3, 4, ACTIONS)
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
    assert not scales[1, : 3 * ACTIONS].any()
    order = np.argsort(-nu[2])
    for x in range(3):
        for a in range(ACTIONS):
            low, high = boxes.lower[1, x, a], boxes.upper[1, x, a]
            expected, left = low.copy(), 1.0 - low.sum()
            for y in order:
                more = min(left, high[y] - low[y])
                expected[y] += more
                left -= more
            np.testing.assert_allclose(p[:, x * ACTIONS + a], expected, atol=1e-9)
            positive = expected > 0
            gain = (expected[positive] * (nu[2][positive] - np.log(expected[positive]))).sum()
            assert gains[x * ACTIONS + a] == pytest.approx(gain, rel=1e-9)


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
    up = kernels._next_breakpoint(0, weights, lower, upper, 0, 2, 0.3, True)
    down = kernels._next_breakpoint(0, weights, lower, upper, 0, 2, 0.3, False)
    assert up == pytest.approx(0.4, rel=1e-9)
    assert up > 0.4
    assert down == pytest.approx(0.1, rel=1e-9)
    assert down < 0.1


def test_the_marginal_entry_is_where_the_mass_runs_out():
    lower = np.array([0.1, 0.1, 0.1]).reshape(1, 3, 1)
    upper = np.array([0.5, 0.5, 0.9]).reshape(1, 3, 1)
    for order, entry in (([0, 1, 2], 1), ([2, 0, 1], 2), ([1, 2, 0], 2)):
        found = kernels.marginal_entry(0, np.array(order), lower, upper, 0, 3)
        assert found == entry
