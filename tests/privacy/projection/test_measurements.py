"""What is read off a release besides its transitions."""

import numpy as np
import pytest

from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.projection.measurements import Measurements, inflow_visits, known
from discreet.privacy.statistics import PrivateCounts

PLAYED = np.ones((3, 2, 1), bool)
VARIANCE = {"transitions": 4.0, "visits": 8.0, "rewards": 2.0}


def release(*, visits=None, dropped_out=None, centred=True, variance=VARIANCE):
    return PrivateCounts(
        100, np.zeros((6, 2)), visits, np.zeros(6), variance, PLAYED, NO_GUARANTEE,
        centred=centred, last_transitions=False, dropped_out=dropped_out,
    )  # fmt: skip


def test_a_release_without_more_holds_nothing_else():
    measurements = Measurements.of(release())
    assert measurements == Measurements(last_transitions=False, visit_variance=8.0)
    assert not measurements.somebody_dropped_out


def test_all_counts_of_those_who_left_are_averaged():
    dropped_out = {"transitions": np.array([6.0, 8.0]), "rewards": np.array([2.0, 4.0, 10.0])}
    measurements = Measurements.of(release(visits=np.arange(6.0), dropped_out=dropped_out))
    assert measurements.dropped_out.tolist() == [4.0, 6.0, 10.0]
    assert measurements.dropped_out_variance.tolist() == [
        2.0,
        2.0,
        4.0,
    ]  # 2·2 is the variance of one cell
    plain = Measurements.of(release(dropped_out=dropped_out, centred=False))
    assert plain.dropped_out_variance.tolist() == [1.5, 1.5, 2.0]
    assert measurements.visits.tolist() == list(range(6))


@pytest.mark.parametrize(
    ("dropped_out", "found"),
    [([0.0, 0.0], False), ([5.9, -3.0], False), ([6.1, 0.0], True), ([4.5, 4.5], True)],
)
def test_more_left_than_noise_explains(dropped_out, found):
    """One count three standard deviations above zero, or all of them together."""
    measurements = Measurements(
        dropped_out=np.array(dropped_out), dropped_out_variance=np.full(2, 4.0)
    )
    assert measurements.somebody_dropped_out == found
    kept = known(measurements, np.ones(6, bool))
    assert (kept.dropped_out is not None) == found


def test_without_noise_a_single_user_is_seen():
    assert Measurements(
        dropped_out=np.array([0.0, 1.0]), dropped_out_variance=np.zeros(2)
    ).somebody_dropped_out
    assert not Measurements(
        dropped_out=np.zeros(2), dropped_out_variance=np.zeros(2)
    ).somebody_dropped_out


def test_rows_that_carry_no_flow_are_dropped():
    inside = np.array([True, False, True, True, True, True])
    kept = known(Measurements(visits=np.arange(6.0)), inside)
    assert kept.visits.tolist() == [0.0, 2.0, 3.0, 4.0, 5.0]


def test_inflow_is_shared_between_the_rows_of_a_state():
    rows = (np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]))
    transitions = np.array([[6.0, 4.0], [0, 0], [0, 0], [0, 0]])
    assert inflow_visits(transitions, rows, 2).tolist() == [10.0, 3.0, 3.0, 4.0]
