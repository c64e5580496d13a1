"""The entropy solver from first principles: KKT conditions, on degenerate boxes too."""

from itertools import pairwise

import numpy as np
import pytest

from discreet.adversarial.entropy import entropy_ftrl, entropy_state, row_major, solve_entropy
from discreet.adversarial.occupancy import confidence_boxes

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


def check_kkt(costs, boxes):
    """Feasible, best response in every block, and q ~ exp(gain - c - nu) in every layer."""
    state = entropy_state(boxes.widths, ACTIONS)
    gap, _ = solve_entropy(costs.copy(), boxes, state, False)
    assert gap < 1e-6
    nu, p = state.potentials, row_major(state)
    reach = np.ones(1)
    for h, lower, upper in layers(boxes):
        here, ahead = WIDTHS[h], WIDTHS[h + 1]
        moves, policy = p[h, :here, :, :ahead], state.policy[h, :here]
        np.testing.assert_allclose(moves.sum(-1), 1, atol=1e-12)
        np.testing.assert_allclose(policy.sum(-1), 1, atol=1e-12)
        assert (moves >= lower).all() and (moves <= upper).all()
        with np.errstate(divide="ignore"):
            slack = nu[h + 1, :ahead] - np.log(moves)  # what moving mass to x' would gain
        check_blocks(slack, moves, lower, upper)
        gains = (moves * np.where(moves > 0, slack, 0)).sum(-1)
        exponent = gains - costs[h, :here] - nu[h, :here, None]
        weights = np.exp(exponent - exponent.max())
        weights /= weights.sum()
        q = reach[:, None] * policy
        # the gap bounds the divergence of q from these weights, hence (Pinsker) their distance
        assert np.abs(q - weights).sum() <= np.sqrt(2 * gap) + 1e-7
        reach = (q[..., None] * moves).sum((0, 1))
    np.testing.assert_allclose(reach, 1, atol=1e-12)
    return state


def check_blocks(slack, moves, lower, upper):
    """Nothing is gained by moving mass from one entry to another inside the box."""
    for index in np.ndindex(slack.shape[:2]):
        can_grow = moves[index] < upper[index] - 1e-12
        can_shrink = moves[index] > lower[index] + 1e-12
        if can_grow.any() and can_shrink.any():
            assert slack[index][can_grow].max() <= slack[index][can_shrink].min() + 1e-6


@pytest.mark.parametrize("radius", [1e-3, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_kkt_on_random_boxes(radius, scale):
    rng = np.random.default_rng([int(1000 * radius), int(scale)])
    for concentration in (0.2, 2.0):
        boxes = boxes_around(distributions(rng, concentration), radius)
        check_kkt(scale * rng.standard_normal(boxes.lower.shape[:3]), boxes)


@pytest.mark.core
def test_zero_width_boxes_leave_only_the_policy():
    rng = np.random.default_rng(0)
    p = distributions(rng)
    boxes = boxes_around(p, 0.0)
    state = check_kkt(3 * rng.standard_normal(p.shape[:3]), boxes)
    np.testing.assert_array_equal(row_major(state)[:, :, :, :1], p[:, :, :, :1])


@pytest.mark.core
def test_some_entries_fixed_some_free():
    rng = np.random.default_rng(1)
    p = distributions(rng, 2.0)
    radius = np.where(rng.random(p.shape) < 0.5, 0.0, 0.4)
    check_kkt(5 * rng.standard_normal(p.shape[:3]), boxes_around(p, radius))


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
    state = check_kkt(4 * rng.standard_normal(p.shape[:3]), boxes)
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
