"""Outcomes listed one by one: exact laws of base and neighbours, both orders, bit for bit."""

import math

import numpy as np
import pytest

from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.auditing.examine import Outcomes
from discreet.privacy.auditing.paths import device
from discreet.privacy.auditing.probes import TooManyError
from helpers import toys
from helpers.auditing import Enumerated

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


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["randomized-response", "one-step"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_reports_of_few_users(mechanism, epsilon):
    plan = Local(epsilon, mechanism=mechanism).calibrate(SMALL, statistics=("rewards",))
    seen = Enumerated(plan)
    assert len(seen.others) == 4
    assert seen.epsilon(0.0) == pytest.approx(epsilon, rel=1e-6)
    assert seen.epsilon(0.0) <= epsilon * (1 + 1e-9)


def test_half_of_the_flips_are_noticed():
    plan = Local(1, mechanism="randomized-response").calibrate(SMALL, statistics=("rewards",))
    from dataclasses import replace

    assert Enumerated(replace(plan, flip=plan.flip / 2)).epsilon(0.0) > 1.5


def test_the_device_of_either_schedule():
    trust = Local(1, mechanism="laplace")
    batch = device(trust.calibrate(SMALL))
    stream = device(trust.calibrate(SMALL, schedule="continual", episodes=3))
    assert type(batch) is type(stream)
    crowd = device(Shuffle(1, 1e-3, mechanism="bits").calibrate(SMALL), 50)
    assert crowd.noise.bits == Shuffle(1, 1e-3, mechanism="bits").calibrate(SMALL).bits(50).bits


def test_a_plan_without_devices_says_so():
    with pytest.raises(UnsupportedError):
        device(Central(1).calibrate(SMALL))
