"""Bands cover, comparisons detect, corrections correct."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.lab.statistics import band, compare, holm, verdicts


def correlated_curves(rng, runs, points=30):
    """Random walks: neighbouring points are strongly correlated, as regret curves are."""
    return np.cumsum(rng.normal(1.0, 1.0, (runs, points)), axis=1)


@pytest.mark.parametrize("runs", [4, 20])
def test_band_covers_the_whole_curve_at_once(runs):
    rng = np.random.default_rng(runs)
    truth = np.arange(1, 31)
    inside = 0
    for _ in range(400):
        limits = band(correlated_curves(rng, runs))
        inside += bool(((limits.low <= truth) & (truth <= limits.high)).all())
    # 95% nominal; 400 trials put 5 standard deviations at 5.4 points.
    assert inside / 400 > 0.895


def test_band_is_between_pointwise_and_bonferroni():
    from scipy import stats

    values = correlated_curves(np.random.default_rng(0), 20)
    limits = band(values)
    factor = (limits.high - limits.mean) / (values.std(axis=0, ddof=1) / np.sqrt(20))
    assert factor.max() < stats.t.ppf(1 - 0.05 / 60, 19)
    assert factor.min() > stats.t.ppf(0.975, 19)


def test_positive_band_stays_positive():
    values = np.array([[1.0], [1.0], [100.0]])
    assert band(values).low[0] < 0
    assert band(values, positive=True).low[0] > 0


def test_one_run_has_no_width():
    limits = band(np.array([[1.0, 2.0]]))
    assert (limits.low == limits.high).all()


def test_compare_uses_the_pairing():
    rng = np.random.default_rng(1)
    shared = rng.normal(1000, 200, 20)  # run-to-run variation far above the difference
    a, b = shared - 20 + rng.normal(0, 5, 20), shared + rng.normal(0, 5, 20)
    answer = compare("a", a, "b", b)
    assert answer.significant
    assert answer.low < -20 < answer.high
    assert "less regret" in str(answer)


def test_compare_of_equal_learners_rejects_rarely():
    rng = np.random.default_rng(2)
    rejected = sum(
        compare("a", rng.normal(0, 1, 10), "b", rng.normal(0, 1, 10)).significant
        for _ in range(400)
    )
    assert rejected / 400 < 0.105  # five standard deviations above 5%


def test_unpaired_runs_are_refused():
    with pytest.raises(InvalidInputError, match="paired"):
        compare("a", np.zeros(3), "b", np.zeros(4))


def test_holm_multiplies_the_smallest_by_the_number():
    rng = np.random.default_rng(3)
    base = rng.normal(0, 1, 12)
    raw = [compare("a", base, str(i), base + 0.3 * i + rng.normal(0, 0.3, 12)) for i in range(3)]
    corrected = holm(raw)
    smallest = min(range(3), key=lambda i: raw[i].p_value)
    assert corrected[smallest].p_value == pytest.approx(min(1, 3 * raw[smallest].p_value))
    assert all(c.p_value >= r.p_value for c, r in zip(corrected, raw, strict=True))


def test_verdicts_name_the_best():
    rng = np.random.default_rng(4)
    finals = [rng.normal(100, 1, 10), rng.normal(50, 1, 10), rng.normal(80, 1, 10)]
    answers = verdicts(["x", "y", "z"], finals)
    assert [c.first for c in answers] == ["y", "y"]
    assert all(c.significant for c in answers)
