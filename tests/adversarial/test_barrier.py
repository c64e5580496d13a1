"""Log-barrier mirror descent: a block against a plain search, a step against what it minimises."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.adversarial import barrier as kernels
from discreet.adversarial.barrier import FLOOR, barrier_state, barrier_step
from discreet.adversarial.occupancy import open_boxes
from helpers.boxes import rolled
from helpers.layers import inside, random_boxes

WIDTHS = np.array([1, 3, 2, 1])


def block_value(slopes, q):
    return float(slopes @ q - np.log(q).sum())


def cone(slopes, lower, upper):
    """Minimum of one block by the kernel: (S, q)."""
    n, q = len(slopes), np.zeros((1, len(slopes)))
    total = kernels.cone_minimum(slopes, lower[None], upper[None], 0, n, 0.0, q)
    return total, q[0]


def searched(slopes, lower, upper):
    """The same by a general optimiser over ln q."""
    bounds = [
        {"type": "ineq", "fun": lambda u: np.exp(u) - lower * np.exp(u).sum()},
        {"type": "ineq", "fun": lambda u: upper * np.exp(u).sum() - np.exp(u)},
    ]
    found = minimize(
        lambda u: float(slopes @ np.exp(u) - u.sum()),
        np.log(np.full(len(slopes), 1.0 / abs(slopes).max())),
        constraints=bounds,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.exp(found.x)


def test_the_start_is_the_uniform_occupancy():
    state = barrier_state(WIDTHS, 2)
    for h in range(3):
        here, ahead = WIDTHS[h], WIDTHS[h + 1]
        q = state.occupancy[h, :here, :, :ahead]
        np.testing.assert_allclose(q, 1.0 / (here * 2 * ahead))
        assert q.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(state.transitions[h, :here, :, :ahead], 1.0 / ahead)
    assert (state.policy == 0.5).all()


def test_a_block_whose_optimum_lies_in_the_cone_is_one_over_its_slopes():
    slopes = np.array([2.0, 4.0, 5.0])
    total, q = cone(slopes, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(q, 1.0 / slopes)
    assert total == pytest.approx((1.0 / slopes).sum())


@pytest.mark.parametrize("radius", [0.02, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_a_clipped_block_is_the_minimum_over_its_cone(seed, radius):
    rng = np.random.default_rng(seed)
    slopes, p = 1.0 + 9.0 * rng.random(4), rng.dirichlet(np.full(4, 3.0))
    lower, upper = np.maximum(p - radius, 0.0), np.minimum(p + radius, 1.0)
    total, q = cone(slopes, lower, upper)
    assert total == pytest.approx(q.sum())
    assert (q >= lower * total * (1 - 1e-9)).all()
    assert (q <= upper * total * (1 + 1e-9)).all()
    other = searched(slopes, lower, upper)
    assert block_value(slopes, q) <= block_value(slopes, other) + 1e-7
    np.testing.assert_allclose(q, other, rtol=2e-3)
    assert slopes @ q == pytest.approx(4.0)  # the scale of q is optimal, too


def test_a_block_without_a_minimum_says_so():
    """A negative slope on an entry that may hold most of the mass: the value has no bound below."""
    total, _ = cone(np.array([-1.0, 0.5]), np.zeros(2), np.ones(2))
    assert total == -1.0
    total, _ = cone(np.array([-1.0]), np.zeros(1), np.ones(1))
    assert total == -1.0


def test_a_negative_slope_is_fine_where_the_box_keeps_the_mean_positive():
    slopes, lower, upper = np.array([-1.0, 5.0]), np.array([0.4, 0.4]), np.array([0.6, 0.6])
    total, q = cone(slopes, lower, upper)
    np.testing.assert_allclose(q / total, [0.6, 0.4])
    assert slopes @ q == pytest.approx(2.0)


def stepped(seed, rate=0.2, radius=0.15):
    mdp, boxes = random_boxes(seed, tuple(WIDTHS), radius=radius)
    rng = np.random.default_rng(seed)
    losses, state = rng.random(mdp.shape.visits), barrier_state(WIDTHS, 2)
    before = state.occupancy.copy()
    gap, steps = barrier_step(losses, rate, boxes, state, np.zeros(boxes.lower.shape))
    return boxes, losses, state, before, gap, steps


def objective(q, before, losses, rate, widths=WIDTHS):
    """<c, q> - sum ln q over the entries that exist, c = rate·loss + 1/q_k."""
    total = 0.0
    for h, here in enumerate(widths[:-1]):
        part = np.s_[h, :here, :, : widths[h + 1]]
        costs = rate * losses[h, :here, :, None] + 1.0 / before[part]
        total += float((costs * q[part] - np.log(q[part])).sum())
    return total


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_feasible_and_nothing_feasible_is_better(seed):
    boxes, losses, state, before, gap, steps = stepped(seed)
    assert inside(boxes, state.transitions, 1e-7)
    assert 0 <= gap < 1e-6
    assert 1 <= steps < kernels.MAX_STEPS
    best = objective(state.occupancy, before, losses, 0.2)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = feasible(rng, boxes, state)
        assert objective(other, before, losses, 0.2) >= best - gap - 1e-9


def feasible(rng, boxes, state):
    """The occupancy of another policy and of other transitions in the boxes, near the solution."""
    policy = 0.9 * state.policy + 0.1 * rng.dirichlet(np.ones(2), state.policy.shape[:2])
    centre = 0.5 * (boxes.lower + boxes.upper)
    totals = centre.sum(axis=-1, keepdims=True)
    centre = np.divide(centre, totals, out=np.zeros_like(centre), where=totals > 0)
    fits = (centre >= boxes.lower - 1e-12).all() and (centre <= boxes.upper + 1e-12).all()
    share = 0.2 * rng.random() if fits else 0.0
    transitions = (1 - share) * state.transitions + share * centre
    pairs = rolled(transitions, policy)
    return np.maximum(pairs[..., None] * transitions, FLOOR)


def test_the_occupancy_left_is_that_of_the_policy_and_the_transitions():
    _, _, state, _, _, _ = stepped(3)
    pairs = rolled(state.transitions, state.policy)
    for h, here in enumerate(WIDTHS[:-1]):
        part = np.s_[h, :here, :, : WIDTHS[h + 1]]
        expected = pairs[h, :here, :, None] * state.transitions[part]
        np.testing.assert_allclose(state.occupancy[part], expected, rtol=1e-12)
        assert state.occupancy[part].sum() == pytest.approx(1.0)


def test_losses_push_the_policy_away_and_more_so_with_a_larger_rate():
    boxes = open_boxes(WIDTHS, (3, 3, 2, 3))
    losses = np.zeros((3, 3, 2))
    losses[:, :, 1] = 1.0
    shares = []
    for rate in (0.0, 0.2, 1.0):
        state = barrier_state(WIDTHS, 2)
        barrier_step(losses, rate, boxes, state, np.zeros(boxes.lower.shape))
        shares.append(float(state.policy[0, 0, 0]))
    assert shares[0] == pytest.approx(0.5, abs=1e-6)
    assert 0.5 < shares[1] < shares[2] < 1.0


def test_renamed_actions_give_the_renamed_policy():
    boxes, losses, state, _, _, _ = stepped(4)
    mirrored = boxes._replace(
        lower=np.flip(boxes.lower, 2).copy(), upper=np.flip(boxes.upper, 2).copy()
    )
    other = barrier_state(WIDTHS, 2)
    flipped = np.flip(losses, 2).copy()
    barrier_step(flipped, 0.2, mirrored, other, np.zeros(boxes.lower.shape))
    np.testing.assert_allclose(np.flip(other.policy, 2), state.policy, atol=1e-6)


def test_the_dual_at_zero_is_minus_infinity_nowhere_and_below_the_primal():
    boxes, losses, state, before, _, _ = stepped(5)
    costs = 0.2 * losses[..., None] + 1.0 / before
    dual = kernels.dual_value(costs, boxes, np.zeros(state.potentials.shape), state)
    assert np.isfinite(dual)
    assert dual <= objective(stepped(5)[2].occupancy, before, losses, 0.2) + 1e-9


def test_the_gradient_of_the_dual_is_its_difference_quotient():
    boxes, losses, state, before, _, _ = stepped(6)
    costs, nu = 0.2 * losses[..., None] + 1.0 / before, np.zeros(state.potentials.shape)
    kernels.dual_value(costs, boxes, nu, state)
    gradient = state.gradient.copy()
    for h, x in ((0, 0), (1, 0), (1, 2), (2, 1)):
        up, down = nu.copy(), nu.copy()
        up[h, x] += 1e-5
        down[h, x] -= 1e-5
        values = [kernels.dual_value(costs, boxes, point, state) for point in (up, down)]
        assert gradient[h, x] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-4)
