"""Adversarial loss sequences."""

import itertools
import pickle

import numpy as np
import pytest

from discreet.adversarial import (
    drifting_losses,
    stochastic_losses,
    switching_losses,
)
from discreet.errors import InvalidInputError
from discreet.mdp import LayeredMDP, RiverSwim, solve, tabular_losses

RIVER = LayeredMDP.from_tabular(RiverSwim(states=4, horizon=6))
MAKERS = {"stochastic": stochastic_losses, "switching": switching_losses, "drift": drifting_losses}


@pytest.mark.core
@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("noisy", [True, False])
def test_blocks_do_not_depend_on_their_boundaries(kind, noisy):
    losses = MAKERS[kind](RIVER, 3000, seed=4, noisy=noisy)
    whole = losses.block(0, 3000)
    assert whole.shape == (3000, 6, 4, 2)
    cuts = [0, 1, 511, 512, 513, 1700, 3000]
    parts = [losses.block(a, b) for a, b in reversed(list(itertools.pairwise(cuts)))]
    np.testing.assert_array_equal(np.concatenate(parts[::-1]), whole)
    assert whole.min() >= 0
    assert whole.max() <= 1
    assert not whole[:, ~RIVER.present].any()
    np.testing.assert_allclose(losses.total(), whole.sum(axis=0))
    np.testing.assert_allclose(losses.total(100, 1300), whole[100:1300].sum(axis=0))


@pytest.mark.parametrize("kind", list(MAKERS))
def test_another_seed_is_another_sequence_and_pickles_are_the_same(kind):
    one, two = (MAKERS[kind](RIVER, 100, seed=seed) for seed in (1, 2))
    assert (one.block(0, 100) != two.block(0, 100)).any()
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.block(20, 80), one.block(20, 80))


def best_for(losses):
    """The best actions for fixed losses."""
    return solve(RIVER.tabular.replace(rewards=1 - losses / 1000)).policy.actions


def test_a_billion_episodes_cost_nothing_until_they_are_read():
    losses = drifting_losses(RIVER, 10**9)
    assert losses.block(10**9 - 3, 10**9).shape == (3, 6, 4, 2)


def test_bits_have_their_means():
    losses = stochastic_losses(RIVER, 20_000, seed=3)
    frequency = losses.total() / 20_000
    # Six standard deviations of a bit's mean.
    deviation = np.abs(frequency - losses.means)[RIVER.present]
    assert deviation.max() <= 6 * 0.5 / np.sqrt(20_000)


def test_the_optimum_switches():
    means = tabular_losses(RiverSwim(states=4, horizon=6))
    losses = switching_losses(RIVER, 1000, means=means, switches=(0.35, 0.8), noisy=False)
    present = RIVER.present
    np.testing.assert_array_equal(
        losses.block(0, 350)[:, present], means[present][None].repeat(350, 0)
    )
    np.testing.assert_array_equal(losses.block(350, 351)[0, present], 1 - means[present])
    np.testing.assert_array_equal(losses.block(799, 801)[:, present][1], means[present])
    before = best_for(losses.total(0, 350))
    after = best_for(losses.total(350, 800))
    assert (before[5, 3], after[5, 3]) == (1, 0)


def test_drift_swings_between_both_means():
    losses = drifting_losses(RIVER, 1200, cycles=3, noisy=False)
    path = losses.block(0, 1200)[:, 1, 0, 0]
    first, other = losses.means[1, 0, 0], losses.other[1, 0, 0]
    assert path[[0, 400, 800]] == pytest.approx([first] * 3)
    assert path[[200, 600, 1000]] == pytest.approx([other] * 3)
    assert path[100] == pytest.approx((first + other) / 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stochastic_losses(RIVER, 0), "episodes"),
        (lambda: stochastic_losses(RIVER, 5, means=np.full((6, 4, 2), 2.0)), r"means in \[0, 1\]"),
        (
            lambda: stochastic_losses(RIVER, 5, means=np.zeros((6, 4))),
            r"means of shape \(6, 4, 2\)",
        ),
        (lambda: switching_losses(RIVER, 5, switches=(0.8, 0.2)), "increasing fractions"),
        (lambda: switching_losses(RIVER, 5, switches=(1.5,)), "increasing fractions"),
        (lambda: drifting_losses(RIVER, 5, cycles=0), "cycles > 0"),
        (lambda: stochastic_losses(RIVER, 5).block(3, 6), "inside the 5 episodes, got 3 to 6"),
        (lambda: stochastic_losses(RIVER, 5).block(-1, 2), "first"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
