"""Printed constants: what they deliver, and that a warning says so."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import (
    CalibrationError,
    DiscreetWarning,
    InvalidInputError,
    UnsupportedError,
)
from discreet.mdp.counts import Counts
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_delta
from discreet.privacy.mechanisms.noise import Laplace
from discreet.privacy.mechanisms.tree import binary_shape, printed_scale
from discreet.privacy.sensitivity import Sensitivity
from discreet.privacy.trust import Central, Local, Shuffle
from discreet.privacy.vectors import calibrate_vectors
from helpers.calibrating import calibrated

SHAPE = Shape(states=4, actions=2, horizon=6)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_printed_local_laplace_delivers_twice_epsilon(epsilon):
    trust = Local(epsilon, mechanism="laplace", calibration="paper")
    with pytest.warns(DiscreetWarning, match="calibration='exact'"):
        stream = trust.calibrate_stream(SHAPE, episodes=10)
    assert stream.guarantee.epsilon == pytest.approx(2 * epsilon)
    assert "claimed" in str(stream.guarantee)
    assert stream.noise.distribution == Laplace(18 / epsilon)


@pytest.mark.core
@pytest.mark.parametrize(("base", "factor"), [(2.0, 2.10), (math.e, 3.03)])
def test_printed_tree(base, factor):
    trust = Central(1, calibration="paper")
    with pytest.warns(DiscreetWarning, match="papers 003 and 004"):
        mechanism = trust.calibrate_stream(SHAPE, episodes=20_000)
    scale = printed_scale(6, 20_000, 1, base)
    assert 36 * binary_shape(20_000).levels / scale == pytest.approx(factor, abs=0.005)
    assert base != 2 or mechanism.noise.distribution.scale == pytest.approx(scale)


def test_printed_is_the_default_tree_through_the_front_door():
    with pytest.warns(DiscreetWarning):
        mechanism = Central(1, calibration="paper").calibrate_stream(SHAPE, episodes=20_000)
    assert mechanism.name == "tree-laplace"
    assert mechanism.guarantee.epsilon == pytest.approx(2.10, abs=0.005)
    with pytest.raises(CalibrationError, match="zero at K = 1"):
        Central(1, calibration="paper").calibrate_stream(SHAPE, episodes=1)


def test_printed_gaussian():
    trust = Local(1, 1e-6, mechanism="gaussian", calibration="paper")
    with pytest.warns(DiscreetWarning, match="delta=0"):
        mechanism = trust.calibrate_stream(SHAPE, episodes=10, stationary=True)
    assert mechanism.noise.distribution.sigma == 6
    assert mechanism.guarantee.delta == pytest.approx(
        gaussian_delta(6.0, 6 * math.sqrt(6), 1.0), rel=0.02
    )


def test_printed_randomised_response():
    trust = Local(1, mechanism="randomized-response", calibration="paper")
    with pytest.raises(CalibrationError, match="not a probability"):
        trust.calibrate_stream(SHAPE, episodes=10)
    wide = Local(20, mechanism="randomized-response", calibration="paper")
    with pytest.warns(DiscreetWarning, match="002"):
        mechanism = wide.calibrate_stream(SHAPE, episodes=10)
    q = mechanism.flip
    assert q == pytest.approx(1 / (math.exp(20 / 6) - 1))
    assert mechanism.guarantee.epsilon == pytest.approx(36 * math.log((1 - q) / q))


def test_paper_002_has_its_own_laplace_scale():
    """Table 1 of 002: Lap(6H/eps), which delivers what it claims; 003 and 004 print 3H/eps."""
    trust = Local(0.5, mechanism="laplace", calibration="paper-002")
    mechanism = trust.calibrate_stream(SHAPE, episodes=9)
    assert mechanism.noise.distribution == Laplace(6 * 6 / 0.5)
    assert mechanism.guarantee.epsilon == pytest.approx(0.5)
    with pytest.warns(DiscreetWarning, match="003 and 004"):
        other = replace(trust, calibration="paper-003").calibrate_stream(SHAPE, episodes=9)
    assert other.noise.distribution == Laplace(3 * 6 / 0.5)


@pytest.mark.parametrize(
    ("trust", "schedule"),
    [
        (Local(1, mechanism="gaussian", calibration="paper-003"), "continual"),
        (Local(20, mechanism="randomized-response", calibration="paper-004"), "continual"),
        (Local(1, mechanism="laplace", calibration="paper-001"), "continual"),
        (Central(1, mechanism="tree-laplace", calibration="paper-002"), "continual"),
        (Shuffle(1, 1e-5, mechanism="bits", calibration="paper-002"), "batch"),
    ],
)
def test_a_paper_that_does_not_print_the_mechanism_is_refused(trust, schedule):
    options = {"schedule": "continual", "episodes": 9} if schedule == "continual" else {}
    with pytest.raises(UnsupportedError, match=f"Paper {trust.paper} prints no constants"):
        calibrated(trust, SHAPE, **options)


@pytest.mark.parametrize(("paper", "tau"), [("paper-000", 379_658), ("paper-001", 500_068)])
def test_beta_is_split_in_001_and_not_in_000(paper, tau):
    """001, Section V: beta' = beta/(HXA); 000, Section V-A: beta for every counter."""
    with pytest.warns(DiscreetWarning, match="deliver"):
        mechanism = Shuffle(1, 1e-5, mechanism="bits", calibration=paper).calibrate(SHAPE)
    assert round(mechanism.printed.tau) == tau
    assert mechanism.printed.epsilon_per_counter == pytest.approx(1 / 18)


def test_a_calibration_is_exact_or_of_one_of_the_five():
    with pytest.raises(InvalidInputError, match="paper-002"):
        Local(1, calibration="paper-005")
    assert not Local(1).printed and Local(1, calibration="paper").printed


def test_printed_dense_losses():
    """004, full information: 4H + XA units on a scale for 3H (no singleton layer here: 4.0)."""
    sensitivity = Sensitivity(units=4 * 6 + 4 * 6 * 2, horizon=6)
    trust = Local(0.5, mechanism="laplace", calibration="paper")
    with pytest.warns(DiscreetWarning):
        mechanism = calibrate_vectors(trust, {"counts": 9, "losses": 48}, sensitivity, episodes=5)
    assert mechanism.guarantee.epsilon == pytest.approx(4.0 * 0.5)


@pytest.mark.parametrize(
    ("trust", "schedule"),
    [
        (Central(1, 1e-6, mechanism="toeplitz", calibration="paper"), "continual"),
        (Central(1, mechanism="tree-signed", calibration="paper"), "continual"),
        (Local(1, 1e-6, mechanism="bounded", calibration="paper"), "continual"),
        (Local(1, calibration="paper"), "batch"),
    ],
)
def test_what_no_paper_prints_is_refused(trust, schedule):
    options = {"schedule": "continual", "episodes": 9} if schedule == "continual" else {}
    with pytest.raises(UnsupportedError, match="No paper prints"):
        calibrated(trust, SHAPE, **options)


def test_algorithm_4_as_printed_never_fills_leaf_zero():
    """Leaves numbered from 1, ones, no noise, K=7: the erratum; ours counts 1..7."""

    def printed(episodes):
        levels = math.ceil(math.log2(episodes))
        leaves, released = np.zeros(2**levels), []
        for k in range(1, episodes + 1):
            leaves[k] = 1  # populate the s_k-th leaf
            total, bits = 0.0, format(k, f"0{levels}b")
            for j in range(1, levels + 1):
                if bits[j - 1] == "1":
                    node = int(bits[: j - 1] + "0", 2)
                    width = 2 ** (levels - j)
                    inside = slice(node * width, (node + 1) * width)
                    filled = node * width >= 1  # leaf 0 is never populated, nor its ancestors
                    total += leaves[inside].sum() if filled else 0
            released.append(int(total))
        return released

    assert printed(7) == [0, 0, 1, 0, 1, 2, 3]
    mechanism = Central(1, mechanism="tree-laplace").calibrate_stream(ONE, episodes=7)
    release = mechanism.open(Silent())
    one = Counts(1, np.ones(ONE.transitions, np.int64), np.zeros(ONE.visits, np.int64))
    assert [release.add(one).visits.item() for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]


ONE = Shape(states=1, actions=1, horizon=1)


class Silent:
    """A sampler without noise."""

    secure = False

    def discrete_laplace(self, scale, size):
        return np.zeros(size, np.int64)

    def laplace_sum(self, scale, users, size):
        return np.zeros(size, np.int64)
