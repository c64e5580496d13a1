"""One path examined: the view, the sentences, and what could not be listed."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.privacy.auditing.additive import DEPENDS, Additive, probe
from discreet.privacy.auditing.examine import CALLS, LOW_BITS, REFUSED, Outcomes, examine
from helpers import toys

pytestmark = pytest.mark.core


def finding(release, *, secure=False, **options):
    return examine(toys.toy(release, **options), secure=secure)


def test_added_noise_is_seen_as_a_matrix():
    found = finding(toys.laplace)
    assert isinstance(found.view, Additive)
    assert found.view.epsilon(0.0) == pytest.approx(1.0)  # two moves of one at scale two
    assert (found.problems, found.unlisted, found.secure) == ((), "", False)


def test_randomised_bits_are_listed():
    found = finding(toys.flipped, secure=True)
    assert isinstance(found.view, Outcomes)
    assert found.view.epsilon(0.0) == pytest.approx(2 * np.log(3))
    assert found.problems == () and found.secure


def test_shared_noise_has_no_epsilon():
    assert finding(toys.shared).view.epsilon(1e-6) == np.inf


def leaky(data, sampler):
    return data / 10 + sampler.discrete_laplace(20.0, data.size) / 10


def test_low_order_bits_are_a_problem_beside_a_good_view():
    found = finding(leaky)
    assert found.problems == (LOW_BITS,)
    assert found.view.epsilon(0.0) == pytest.approx(0.1)


def test_low_order_bits_of_one_kind_of_sampler():
    def branches(data, sampler):
        if sampler.secure:
            return leaky(data, sampler)
        return (data + sampler.discrete_laplace(20.0, data.size)) / 10

    assert finding(branches).problems == ()
    assert finding(branches, secure=True).problems == (LOW_BITS,)


def test_noise_that_knows_the_data_is_a_problem_without_a_view():
    def louder(data, sampler):
        return data + (1 + (data[0] > 0)) * sampler.discrete_laplace(2.0, data.size)

    found = finding(louder)
    assert found.view is None
    assert found.problems == (DEPENDS,)


def test_each_problem_is_said_once():
    def extra(data, sampler):
        if data[0] > 0:
            sampler.discrete_laplace(2.0, 1)
        return toys.laplace(data, sampler)

    found = finding(extra)
    assert found.problems == (f"{CALLS} (other)", DEPENDS)


def test_a_refusal_is_reported_and_not_raised():
    def refuses(data, sampler):
        if data[0] > 0:
            raise InvalidInputError("Expected somebody else.")
        return toys.laplace(data, sampler)

    found = finding(refuses)
    assert found.view is None
    assert f"{REFUSED} (other)" in found.problems
    assert "It refuses what it should publish: Expected somebody else." in found.problems


def test_other_errors_are_raised():
    def broken(data, sampler):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        finding(broken)


def test_too_many_outcomes_are_no_problem_but_said():
    def many(data, sampler):
        return np.abs(data) % 2 ^ sampler.binomial(1, 0.25, data.size)

    found = finding(many, base=[0] * 14, other=[1] + [0] * 13)
    assert found.view is None and found.problems == ()
    assert found.unlisted == "More than 8,192 outcomes; audit a smaller shape."


def test_a_window_is_enumerated_though_noise_could_be_probed():
    def bits(data, sampler):
        return data + sampler.binomial(2, 0.5, data.size)

    found = finding(bits, path={"window": (0, 1)})
    assert isinstance(found.view, Outcomes)
    assert len(found.view.base) == 3  # the second draw stays in the middle


def test_a_hint_is_passed_on():
    release = toys.laplace
    hint = probe(toys.toy(release))
    found = examine(toys.toy(release), secure=False, hint=hint)
    assert np.array_equal(found.view.response, hint.response)
