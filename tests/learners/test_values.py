"""The value of a policy: its two ends, and its gradient against differences of values."""

import numpy as np
import pytest

from discreet.learners.values import Layers, value_of

pytestmark = pytest.mark.core

H, S, K, USERS = 3, 3, 2, 1_000
SUPPORT = np.ones((H, S, K), bool)


class Watched:
    """Noise that says nothing, and keeps what it was asked of."""

    support = SUPPORT

    def __init__(self):
        self.asked = []

    def noise(self, gradient):
        self.asked.append(gradient)
        return 0.0


def layers(transitions, rewards, *, noise=None, **others):
    """Counts of which all is known, unless something else is said; rewards are sums of r - 1/2."""
    zero, half = np.zeros((H, S, K)), np.full((H, S, K), 0.5)
    given = {"reward_noise": 0.0, "visit_noise": (zero, zero[..., 0]), "drawn": SUPPORT} | others
    earned = rewards + half * transitions.sum(axis=-1)
    return Layers(USERS, noise or Watched(), transitions, earned, half, **given)


def consistent(rng):
    """Flows of a thousand people."""
    arrived, found = np.array([USERS, 0, 0]), np.zeros((H, S, K, S))
    arrived = rng.multinomial(USERS, [0.4, 0.3, 0.3])
    for h in range(H):
        for s in range(S):
            cells = rng.dirichlet(np.full(K * S, 2.0))
            found[h, s] = rng.multinomial(arrived[s], cells).reshape(K, S)
        arrived = found[h].sum(axis=(0, 1)).astype(int)
    return found


@pytest.mark.parametrize("deferring", [False, True])
def test_the_gradient_is_that_of_the_value(deferring):
    rng = np.random.default_rng(0)
    transitions = consistent(rng)
    rewards = rng.uniform(-0.4, 0.4, (H, S, K)) * transitions.sum(axis=-1)
    chances = rng.dirichlet(np.ones(K), (H, S))
    defers = np.zeros((H, S), bool)
    defers[1, :2] = deferring
    watched = Watched()
    value_of(layers(transitions, rewards, noise=watched), chances, defers)
    (gradient, _), step = watched.asked, 1e-4
    for _ in range(20):
        move = rng.normal(size=transitions.shape)
        move[-1] = move[-1].mean(axis=-1, keepdims=True)  # where it leads to means nothing there
        ends = [
            value_of(layers(transitions + sign * step * move, rewards), chances, defers)[0].value
            for sign in (1, -1)
        ]
        apart = (ends[0] - ends[1]) / (2 * step)
        assert (gradient * move[SUPPORT]).sum() == pytest.approx(apart, rel=1e-4, abs=1e-7)


def test_noise_of_counts_and_of_rewards_widens_the_interval():
    transitions = consistent(np.random.default_rng(1))
    rewards, chances, defers = np.zeros((H, S, K)), np.full((H, S, K), 0.5), np.zeros((H, S), bool)

    class Loud(Watched):
        def noise(self, gradient):
            return 0.04

    quiet, _ = value_of(layers(transitions, rewards), chances, defers)
    loud, _ = value_of(layers(transitions, rewards, noise=Loud()), chances, defers)
    paid, _ = value_of(layers(transitions, rewards, reward_noise=400.0), chances, defers)
    wide = [((one.high - one.low) / (2 * 1.959964)) ** 2 for one in (quiet, loud, paid)]
    assert wide[1] - wide[0] == pytest.approx(0.04)
    times = transitions.sum(axis=-1)  # W/N: everybody is counted, and half takes each row
    share = times.sum(axis=-1, keepdims=True) / 2 / USERS
    assert wide[2] - wide[0] == pytest.approx((400 * (share / times) ** 2).sum(), rel=0.2)


def test_rows_that_noise_explains_are_worth_anything():
    transitions = consistent(np.random.default_rng(2))
    zero, defers = np.zeros((H, S, K)), np.zeros((H, S), bool)
    doubt = zero.copy()
    doubt[0, :, 1] = 1e9
    unknown = layers(transitions, zero, visit_noise=(doubt, zero[..., 0]))
    sure = np.eye(K)[np.zeros((H, S), int)]
    assert value_of(unknown, sure, defers)[1] == 0
    found, unseen = value_of(unknown, sure[..., ::-1], defers)
    assert unseen == pytest.approx(1.0)
    assert (found.low, found.high) == pytest.approx((0, H))
