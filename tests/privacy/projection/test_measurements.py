"""What is read off a release besides its transitions."""

import numpy as np
import pytest

from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.projection.measurements import Measurements, inflow_visits, known
from discreet.privacy.statistics import PrivateCounts

PLAYED = np.ones((3, 2, 1), bool)
VARIANCE = {"transitions": 4.0, "visits": 8.0, "rewards": 2.0}


def release(*, visits=None, left=None, centred=True, variance=VARIANCE):
    return PrivateCounts(
        100, np.zeros((6, 2)), visits, np.zeros(6), variance, PLAYED, NO_GUARANTEE,
        centred=centred, last_transitions=False, left=left,
    )  # fmt: skip


def test_a_release_without_more_holds_nothing_else():
    measurements = Measurements.of(release())
    assert measurements == Measurements(last_transitions=False, visit_variance=8.0)
    assert not measurements.somebody_left


def test_all_counts_of_those_who_left_are_averaged():
    left = {"transitions": np.array([6.0, 8.0]), "rewards": np.array([2.0, 4.0, 10.0])}
    measurements = Measurements.of(release(visits=np.arange(6.0), left=left))
    assert measurements.left.tolist() == [4.0, 6.0, 10.0]
    assert measurements.left_variance.tolist() == [2.0, 2.0, 4.0]  # 2·2 is the variance of one cell
    plain = Measurements.of(release(left=left, centred=False))
    assert plain.left_variance.tolist() == [1.5, 1.5, 2.0]
    assert measurements.visits.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("left", "found"),
    [([0.0, 0.0], False), ([5.9, -3.0], False), ([6.1, 0.0], True), ([4.5, 4.5], True)],
)
def test_more_left_than_noise_explains(left, found):
    """One count three standard deviations above zero, or all of them together."""
    measurements = Measurements(left=np.array(left), left_variance=np.full(2, 4.0))
    assert measurements.somebody_left == found
    kept = known(measurements, np.ones(6, bool))
    assert (kept.left is not None) == found


def test_without_noise_a_single_user_is_seen():
    assert Measurements(left=np.array([0.0, 1.0]), left_variance=np.zeros(2)).somebody_left
    assert not Measurements(left=np.zeros(2), left_variance=np.zeros(2)).somebody_left


def test_rows_that_carry_no_flow_are_dropped():
    inside = np.array([True, False, True, True, True, True])
    kept = known(Measurements(visits=np.arange(6.0)), inside)
    assert kept.visits.tolist() == [0.0, 2.0, 3.0, 4.0, 5.0]


def test_inflow_is_shared_between_the_rows_of_a_state():
    rows = (np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]))
    transitions = np.array([[6.0, 4.0], [0, 0], [0, 0], [0, 0]])
    assert inflow_visits(transitions, rows, 2).tolist() == [10.0, 3.0, 3.0, 4.0]
