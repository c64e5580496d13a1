"""Counts and losses together: the bound, its refutation, and brute force."""

import itertools
import math
from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.privacy.certificates.layered import layered_delta, layered_refutation

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
        "epsilon": epsilon,
    }
    truth = brute_force(**case)
    low, high = layered_refutation(**case), layered_delta(**case)
    assert float(low) <= truth * (1 + 1e-9)
    assert truth <= float(high) * (1 + 1e-9)
    assert high - low <= Fraction(1, 10) * high + Fraction(1, 10**30)


def test_the_composition_is_not_that_of_one_gaussian():
    case = NOISE | {"counts": 4, "losses": 2, "epsilon": 40}
    assert Fraction("1.0697e-6") < layered_refutation(**case)
    assert layered_delta(**case) < Fraction("1.0698e-6")


def test_a_sum_of_many_counts_goes_through_the_lemma():
    case = {"counts": 24, "losses": 12, "epsilon": 1, "loss_shift": 1024}
    noise = {"count_sigma": 25.348122846451773, "loss_sigma": 25956.427098619937}
    assert Fraction("0.9999e-6") < layered_delta(**case, **noise) < Fraction("1e-6")
    assert layered_refutation(**case, **noise | {"loss_sigma": 12978.0}) > Fraction("1e-6")


def test_refuses_what_is_no_noise():
    with pytest.raises(ValueError, match="loss_sigma > 0"):
        layered_delta(**NOISE | {"loss_sigma": 0}, counts=4, losses=2, epsilon=1)
    with pytest.raises(ValueError, match="counts to be an integer >= 0"):
        layered_delta(**NOISE, counts=-1, losses=2, epsilon=1)
