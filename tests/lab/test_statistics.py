"""Bands cover, comparisons detect, corrections correct."""

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.lab.summary import Comparison, band, compare, holm, verdicts


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


def test_the_sign_test_is_exact_for_ten_runs():
    """All ten differences of one sign: two of 1,024 flips are as extreme."""
    answer = compare("a", np.arange(10.0), "b", np.arange(10.0) + 1)
    assert answer.p_value == pytest.approx(2 / 1024)
    assert (answer.difference, answer.runs) == (-1.0, 10)


def test_few_runs_use_students_t():
    from scipy import stats

    difference = np.array([1.0, 2.0, 3.0, 4.0, 2.5])
    answer = compare("a", difference, "b", np.zeros(5))
    known = stats.ttest_1samp(difference, 0.0)
    assert answer.p_value == pytest.approx(known.pvalue)
    interval = known.confidence_interval()
    assert (answer.low, answer.high) == pytest.approx((interval.low, interval.high))
    assert "a has more regret than b" in str(answer)


def test_a_sampled_sign_test_never_says_zero():
    """Twenty runs have more flips than are drawn; the observed one is counted in."""
    answer = compare("a", np.ones(20), "b", np.zeros(20))
    assert 0 < answer.p_value <= 2 / 4001


def test_the_sampled_sign_test_agrees_with_the_exact_one():
    """Thirteen runs: 8,192 flips, of which 4,000 are drawn; compared within 5.5 deviations."""
    import itertools

    difference = np.random.default_rng(8).normal(0.5, 1.0, 13)
    flips = np.array(list(itertools.product((-1, 1), repeat=13))) @ difference
    exact = np.mean(np.abs(flips) >= abs(difference.sum()) * (1 - 1e-12))
    assert 0.01 < exact < 0.5
    sampled = compare("a", difference, "b", np.zeros(13)).p_value
    assert abs(sampled - exact) < 5.5 * np.sqrt(exact * (1 - exact) / 4000)


@pytest.mark.parametrize("runs", [1, 3, 12])
def test_equal_runs_are_no_difference(runs):
    answer = compare("a", np.ones(runs), "b", np.ones(runs))
    assert answer.p_value == 1.0
    assert str(answer).startswith("No significant difference between a and b")


def test_a_constant_difference_of_few_runs_is_certain():
    assert compare("a", np.ones(3), "b", np.zeros(3)).p_value == 0.0


def test_holm_on_known_values():
    known = [Comparison("a", "b", 0, 0, 0, p, 10) for p in (0.01, 0.04, 0.03)]
    assert [c.p_value for c in holm(known)] == pytest.approx([0.03, 0.06, 0.06])
    assert [c.significant for c in holm(known)] == [True, False, False]


def test_verdicts_leave_out_those_with_missing_runs():
    answers = verdicts(["x", "y", "z"], [np.zeros(10), np.ones(9), np.ones(10)])
    assert [c.second for c in answers] == ["z"]


def test_positive_band_has_the_same_mean_and_is_symmetric_in_logarithms():
    values = np.random.default_rng(5).lognormal(0, 0.5, (20, 4))
    limits, plain = band(values, positive=True), band(values)
    np.testing.assert_allclose(limits.low * limits.high, limits.mean**2)
    factor = (plain.high - plain.mean) / plain.mean
    np.testing.assert_allclose(np.log(limits.high / limits.mean), factor)


def test_a_level_is_a_level():
    values = correlated_curves(np.random.default_rng(6), 20)
    widths = [float((b.high - b.low).mean()) for b in (band(values, 0.5), band(values, 0.99))]
    assert widths[0] < widths[1]


def test_a_point_without_spread_has_no_width():
    values = np.ones((8, 2))
    values[:, 1] = np.arange(8)
    limits = band(values)
    assert limits.low[0] == limits.high[0] == 1.0
    assert limits.low[1] < 3.5 < limits.high[1]
