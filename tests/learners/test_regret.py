"""One recorder, whichever way a run computes its regret."""

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.learners.result import RegretRecorder, record_points

pytestmark = pytest.mark.core


def test_points_are_increasing_and_end_at_the_last_episode():
    points = record_points(12_345)
    assert points[0] == 1
    assert points[-1] == 12_345
    assert (np.diff(points) > 0).all()
    assert len(points) < 100


def test_episodes_that_doubles_cannot_count_are_refused():
    with pytest.raises(DiscreetError, match="episodes <="):
        record_points(10**16)


def test_one_by_one_in_pieces_and_cumulative_are_one_curve():
    regrets = np.random.default_rng(0).random(1000)
    single, pieces, cumulative = (RegretRecorder(1000) for _ in range(3))
    for regret in regrets:
        single.add(1, regret)
    start = 0
    for part in np.split(regrets, [1, 7, 300, 999]):
        pieces.add_each(part)
        sums = [float(regrets[: start + n].sum()) for n in cumulative.ahead(len(part))]
        cumulative.record(sums, len(part))
        start += len(part)
    for other in (pieces, cumulative):
        assert np.array_equal(single.curve().episodes, other.curve().episodes)
        np.testing.assert_allclose(single.curve().values, other.curve().values)
        assert other.episode == 1000


def test_many_users_with_one_policy_are_a_straight_line():
    recorder = RegretRecorder(500)
    recorder.add(200, 0.5)
    recorder.add(300, 0.25)
    curve = recorder.curve()
    expected = np.minimum(curve.episodes, 200) * 0.5 + np.maximum(curve.episodes - 200, 0) * 0.25
    np.testing.assert_allclose(curve.values, expected)
    assert recorder.total == pytest.approx(175)


def test_points_ahead_are_counted_from_now():
    recorder = RegretRecorder(100)
    recorder.add(10, 1.0)
    assert recorder.ahead(5) == [int(p) - 10 for p in recorder.points if 10 < p <= 15]


def test_an_unfinished_run_has_an_unfinished_curve():
    recorder = RegretRecorder(1000)
    recorder.add(10, 1.0)
    assert recorder.curve().episodes[-1] <= 10
    assert len(recorder.curve().values) == len(recorder.curve().episodes)
