"""Counts and losses together: the bound, its refutation, and brute force."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates.distributions import Layers, layered_delta, layered_refutation

NOISE = {"count_sigma": 0.44977531943995186, "loss_sigma": 460.5699271065107, "loss_shift": 1024}


def brute_force(*, count_sigma, counts, loss_sigma, loss_shift, losses, epsilon):
    """Sum over all outputs, in doubles."""

    def draws(sigma, shift):
        values = range(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
        weights = [math.exp(-0.5 * (x / sigma) ** 2) for x in values]
        total = math.fsum(weights)
        return [
            (w / total, (shift**2 - 2 * shift * x) / (2 * sigma**2))
            for x, w in zip(values, weights, strict=True)
        ]

    parts = [draws(count_sigma, 1)] * counts + [draws(loss_sigma, loss_shift)] * losses
    return math.fsum(
        math.prod(p for p, _ in outcome) * -math.expm1(epsilon - loss)
        for outcome in itertools.product(*parts)
        if (loss := math.fsum(x for _, x in outcome)) > epsilon
    )


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize(("counts", "losses"), [(1, 1), (2, 1), (0, 1), (2, 0)])
def test_agrees_with_brute_force(counts, losses, epsilon):
    case = {
        "count_sigma": 0.75,
        "counts": counts,
        "loss_sigma": 60.0,
        "loss_shift": 64,
        "losses": losses,
    }
    truth, moved = brute_force(**case, epsilon=epsilon), Layers(**case)
    low, high = layered_refutation(moved, epsilon), layered_delta(moved, epsilon)
    assert float(low) <= truth * (1 + 1e-9)
    assert truth <= float(high) * (1 + 1e-9)
    assert high - low <= Fraction(1, 10) * high + Fraction(1, 10**30)


def test_the_composition_is_not_that_of_one_gaussian():
    moved = Layers(**NOISE, counts=4, losses=2)
    assert Fraction("1.0697e-6") < layered_refutation(moved, 40)
    assert layered_delta(moved, 40) < Fraction("1.0698e-6")


def test_a_sum_of_many_counts_goes_through_the_lemma():
    noise = {"count_sigma": 25.348122846451773, "loss_sigma": 25956.427098619937}
    moved = Layers(counts=24, losses=12, loss_shift=1024, **noise)
    assert Fraction("0.9999e-6") < layered_delta(moved, 1) < Fraction("1e-6")
    assert layered_refutation(replace(moved, loss_sigma=12978.0), 1) > Fraction("1e-6")


def test_refuses_what_is_no_noise():
    with pytest.raises(ValueError, match="loss_sigma > 0"):
        Layers(**NOISE | {"loss_sigma": 0}, counts=4, losses=2)
    with pytest.raises(ValueError, match="counts to be an integer >= 0"):
        Layers(**NOISE, counts=-1, losses=2)
