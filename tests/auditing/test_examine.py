"""One path, examined: what depends on data, and outcomes that are listed."""

import math

import numpy as np
import pytest

from discreet.auditing.additive import DEPENDS, Additive, probe
from discreet.auditing.examine import (
    CALLS,
    LOW_BITS,
    REFUSED,
    SIZES,
    Outcomes,
    examine,
    undisciplined,
)
from discreet.auditing.probes import TooManyError
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Local
from helpers import toys
from helpers.auditing import Enumerated

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


# Refusals, sizes and calls that depend on data are found; sound toys are left in peace.


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


def other_noise(data, sampler):
    return data + sampler.discrete_laplace(3.0 if data[0] > 0 else 2.0, data.size)


def other_order(data, sampler):
    first, second = (2.0, 3.0) if data[0] > 0 else (3.0, 2.0)
    return data + sampler.discrete_laplace(first, 2) + sampler.discrete_laplace(second, 2)


def extra_draw(data, sampler):
    if data[0] > 0:
        sampler.discrete_laplace(9.0, 1)
    return toys.laplace(data, sampler)


def regrouped(data, sampler):
    """As many draws of the same noise, in other calls: whoever watches the sampler sees it."""
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
        (other_noise, CALLS),
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
    texts = found(other_noise, quiet=(-1, 0), loud=(5, 0), louder=(6, 0))
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


# Outcomes listed one by one: exact distributions of base and neighbours, both orders, bit for bit.
SMALL = Shape(states=1, actions=2, horizon=2)
LOG3 = math.log(3)


def key(*values):
    return np.array(values, np.float64).tobytes()


def test_all_outcomes_with_their_probabilities():
    seen = Outcomes(toys.toy(toys.flipped))
    assert seen.base == pytest.approx(
        {key(0, 0): 9 / 16, key(0, 1): 3 / 16, key(1, 0): 3 / 16, key(1, 1): 1 / 16}
    )
    assert seen.others[0][key(1, 1)] == pytest.approx(9 / 16)


def test_the_epsilon_of_two_flipped_bits():
    seen = Outcomes(toys.toy(toys.flipped))
    assert seen.epsilon(0.0) == pytest.approx(2 * LOG3)
    assert seen.delta(LOG3) == pytest.approx(9 / 16 - 3 / 16)
    assert seen.curve(LOG3, 0.0) == (pytest.approx(2 * LOG3), pytest.approx(6 / 16))


def test_the_worst_neighbour_counts():
    seen = Outcomes(toys.toy(toys.flipped, near=(1, 0), far=(1, 1), same=(0, 0)))
    assert seen.epsilon(0.0) == pytest.approx(2 * LOG3)
    assert Outcomes(toys.toy(toys.flipped, same=(0, 0))).epsilon(0.0) == pytest.approx(0, abs=1e-12)


def rare(data, sampler):
    """Only who has the first bit ever answers one, and rarely."""
    return data[:1] * sampler.binomial(1, 0.25, 1)


@pytest.mark.parametrize(("base", "other"), [((0, 0), (1, 0)), ((1, 0), (0, 0))])
def test_both_orders_of_the_data_sets(base, other):
    """What only one of them can publish has no epsilon, whichever is the neighbour."""
    seen = Outcomes(toys.toy(rare, base, other=other))
    assert seen.epsilon(0.2) == math.inf
    assert seen.epsilon(0.25) < math.inf
    assert seen.delta(9.0) == pytest.approx(0.25)


def test_the_last_bit_tells():
    def traced(data, sampler):
        return toys.flipped(data, sampler) + 1e-15 * data

    seen = Outcomes(toys.toy(traced))
    assert seen.epsilon(0.5) == math.inf
    assert seen.delta(0.0) == pytest.approx(1)


def test_both_kinds_of_sampler():
    def branches(data, sampler):
        return np.abs(data) % 2 ^ sampler.binomial(1, 0.25 if sampler.secure else 0.5, data.size)

    path = toys.toy(branches)
    assert Outcomes(path).epsilon(0.0) == pytest.approx(0, abs=1e-9)
    assert Outcomes(path, secure=True).epsilon(0.0) == pytest.approx(2 * LOG3)


def test_a_window_of_draws():
    """Only the second bit is visited: the first stays where it is."""
    seen = Outcomes(toys.toy(toys.flipped, path={"window": (1, 2)}))
    assert len(seen.base) == 2
    assert math.fsum(seen.base.values()) == pytest.approx(1)


def test_noise_without_end_is_refused_at_once():
    with pytest.raises(UnsupportedError, match="infinite support"):
        Outcomes(toys.toy(toys.laplace))


@pytest.mark.parametrize(("bits", "fine"), [(13, True), (14, False)])
def test_too_many_outcomes_are_refused_before_they_are_listed(bits, fine):
    runs = []

    def counted(data, sampler):
        runs.append(1)
        return toys.flipped(data, sampler)

    path = toys.toy(counted, [0] * bits, other=[0] * bits, path={})
    if fine:
        assert len(Outcomes(path).base) == 2**bits
    else:
        with pytest.raises(TooManyError, match="8,192"):
            Outcomes(path)
        assert len(runs) == 1


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_reports_of_few_users(epsilon):
    plan = Local(epsilon).calibrate(SMALL, statistics=("rewards",))
    seen = Enumerated(plan)
    assert len(seen.others) == 4
    assert seen.epsilon(0.0) == pytest.approx(epsilon, rel=1e-6)
    assert seen.epsilon(0.0) <= epsilon * (1 + 1e-9)


def test_half_of_the_flips_are_noticed():
    plan = Local(1).calibrate(SMALL, statistics=("rewards",))
    from dataclasses import replace

    assert Enumerated(replace(plan, flip=plan.flip / 2)).epsilon(0.0) > 1.5
