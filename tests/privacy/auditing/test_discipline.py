"""Refusals, sizes and calls that depend on data are found; sound toys are left in peace."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.auditing.examine import CALLS, REFUSED, SIZES, undisciplined
from helpers import toys

pytestmark = pytest.mark.core


def found(release, *, secure=False, path=None, **others):
    return list(undisciplined(toys.toy(release, path=path, **others), secure=secure))


@pytest.mark.parametrize("release", [toys.laplace, toys.gaussian, toys.shared, toys.flipped])
@pytest.mark.parametrize("secure", [False, True])
def test_sound_and_even_weak_noise_is_disciplined(release, secure):
    """How much noise there is, is not the question here."""
    assert found(release, secure=secure) == []


def refuses(data, sampler):
    if data[0] > 0:
        raise InvalidInputError("Expected nobody like this.")
    return toys.laplace(data, sampler)


def longer(data, sampler):
    return toys.laplace(np.zeros(2 + int(data[0] > 0)), sampler)


def other_law(data, sampler):
    return data + sampler.discrete_laplace(3.0 if data[0] > 0 else 2.0, data.size)


def other_order(data, sampler):
    first, second = (2.0, 3.0) if data[0] > 0 else (3.0, 2.0)
    return data + sampler.discrete_laplace(first, 2) + sampler.discrete_laplace(second, 2)


def extra_draw(data, sampler):
    if data[0] > 0:
        sampler.discrete_laplace(9.0, 1)
    return toys.laplace(data, sampler)


def regrouped(data, sampler):
    """As many draws of the same law, in other calls: whoever watches the sampler sees it."""
    if data[0] > 0:
        return data + np.r_[sampler.discrete_laplace(2.0, 1), sampler.discrete_laplace(2.0, 1)]
    return toys.laplace(data, sampler)


def mixed_up(data, sampler):
    """Messages are shuffled for some data only."""
    if data[0] > 0:
        sampler.permutation(2)
    return toys.laplace(data, sampler)


@pytest.mark.parametrize(
    ("release", "sentence"),
    [
        (refuses, REFUSED),
        (longer, SIZES),
        (other_law, CALLS),
        (other_order, CALLS),
        (extra_draw, CALLS),
        (regrouped, CALLS),
        (mixed_up, CALLS),
    ],
)
def test_what_depends_on_data_is_said_with_the_neighbour(release, sentence):
    assert set(found(release)) == {f"{sentence} (other)"}


def test_a_refusal_of_the_base_is_one_too():
    assert set(found(refuses, base=(1, 0), other=(0, 0))) == {f"{REFUSED} (other)"}
    assert found(refuses, base=(1, 0), other=(2, 0)) == []  # everybody is refused


def test_only_the_neighbours_that_differ_are_named():
    texts = found(other_law, quiet=(-1, 0), loud=(5, 0), louder=(6, 0))
    assert {text.rsplit("(", 1)[1] for text in texts} == {"loud)", "louder)"}


def test_sums_over_users_may_draw_as_data_ask():
    assert found(extra_draw, path={"simulated": True}) == []
    assert found(refuses, path={"simulated": True})  # refusals still count
    assert found(longer, path={"simulated": True})


def test_the_kind_of_sampler_is_passed_on():
    def leaks(data, sampler):
        return (extra_draw if sampler.secure else toys.laplace)(data, sampler)

    assert found(leaks) == []
    assert found(leaks, secure=True)


def test_draws_that_follow_from_draws_are_seen_with_noise_only():
    """With all draws zero nothing happens; with others a second draw is made for some data."""

    def again(data, sampler):
        noise = sampler.discrete_laplace(2.0, data.size)
        if (noise > 0).any() and data[0] > 0:
            noise = sampler.discrete_laplace(2.0, data.size)
        return data + noise

    assert found(again) == [f"{CALLS} (other)"]
    assert found(again, path={"thorough": False}) == [f"{CALLS} (other)"]


def test_randomised_data_are_watched_through_a_script():
    def per_unit(data, sampler):
        return data + sampler.binomial(np.abs(data), 0.5, data.size)

    def biased(data, sampler):
        return data + sampler.binomial(np.abs(data), 0.5 if data[0] > 0 else 0.25, data.size)

    assert found(per_unit) == []
    assert set(found(biased)) == {f"{CALLS} (other)"}
