"""Bands cover, comparisons detect, corrections correct; rows, warnings, who wins."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.errors import InvalidInputError
from discreet.lab.summary import (
    Comparison,
    band,
    compare,
    holm,
    summarise,
    verdicts,
    warnings_of,
    winners,
)
from helpers.experiments import series


def of(*group, guarantees=()):
    """Results without files."""
    return SimpleNamespace(series=lambda: list(group), guarantees=guarantees)


def test_a_row_has_mean_spread_and_limits():
    (row,) = summarise(of(series(scale=2.0)))
    final = 2.0 * np.sqrt(1000)
    assert row.mean == pytest.approx(1.5 * final)
    assert row.std == pytest.approx(final / np.sqrt(2))
    assert 0 < row.low < row.mean < row.high
    assert row.runs == 2
    assert row.uniform == 2000.0
    assert row.share == pytest.approx(row.mean / 2000)


def test_one_run_has_no_spread():
    one = series()
    (row,) = summarise(of(replace(one, regret=one.regret[:1])))
    assert (row.runs, row.std) == (1, 0.0)
    assert row.low == row.mean == row.high


def test_a_share_never_rounds_to_a_bare_zero():
    one = series()
    (row,) = summarise(of(replace(one, uniform=np.full(4, 100.0))))
    assert replace(row, mean=0.5).share_text == "0.50%"
    assert replace(row, mean=1e-4).share_text == "0.0001%"
    (row,) = summarise(of(replace(one, uniform=np.zeros(4))))
    assert row.share_text == "-"


def test_json_has_null_for_what_is_not_guaranteed():
    (row,) = summarise(of(series()))
    plain = row.to_dict()
    assert plain["epsilon"] is None
    assert plain["guarantee"]["notion"] == "none"
    json.dumps(plain, allow_nan=False)
    (row,) = summarise(of(replace(series(), seconds=0.0)))
    assert row.to_dict()["episodes_per_second"] is None


def test_json_says_what_made_the_numbers():
    (row,) = summarise(of(series("local", 2.0)))
    plain = row.to_dict()
    assert (plain["mechanism"], plain["requested_mechanism"]) == ("laplace", "auto")
    assert plain["noise_std"] == {"transitions": 5.0, "rewards": 99.0}
    assert plain["version"] == "9.9"
    assert plain["episodes_per_second"] == pytest.approx(10_000)


def entry(**guarantee):
    defaults = {"notion": "LDP", "epsilon": 1.0, "delta": 0.0, "simulated": False, "claimed": None}
    asked = {"label": "L", "trust": "local", "epsilon": 0.5, "delta": 0.0}
    return {**asked, "guarantee": {**defaults, **guarantee}}


def test_simulated_noise_warns_once_and_no_privacy_of_nothing():
    assert warnings_of(of(guarantees=[entry()])) == []
    assert warnings_of(of(guarantees=[entry(notion="none", simulated=True)])) == []
    (text,) = warnings_of(of(guarantees=[entry(simulated=True)] * 3))
    assert "not a protection of real people" in text


def test_printed_constants_warn_of_what_they_deliver():
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP")]))
    assert text.startswith("L (local)")
    assert "claim (0.5, 0)-LDP but deliver (1, 0)-LDP" in text
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP", epsilon=0.5)]))
    assert "claim (0.5, 0)-LDP and deliver (0.5, 0)-LDP" in text
    (text,) = warnings_of(of(guarantees=[entry(claimed="(0.5, 0)-LDP", epsilon=None)]))
    assert text.endswith("claim (0.5, 0)-LDP but nothing is guaranteed.")
    known = entry(claimed="(0.5, 0)-LDP", epsilon=None, assumptions=["all are honest", "why"])
    (text,) = warnings_of(of(guarantees=[known]))
    assert text.endswith("but nothing is guaranteed; why.")


def test_what_a_learner_notes_is_said():
    noted = {**entry(), "notes": ["the counts contradict it."]}
    assert warnings_of(of(guarantees=[noted])) == ["L (local): the counts contradict it."]


def test_winners_are_found_per_environment_at_the_largest_k():
    group = [
        series(label="short", episodes=10, scale=0.01),  # would win, but is another K
        series(label="good"),
        series(label="bad", scale=3.0),
        series(label="alone", environment="F"),
    ]
    ((environment, (comparison,)),) = winners(of(*group))
    assert environment == "E"
    assert comparison.first == "good, no privacy"
    assert comparison.second == "bad, no privacy"
    assert comparison.difference < 0


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
    assert answer.interval[0] < -20 < answer.interval[1]
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
    assert answer.interval == pytest.approx((interval.low, interval.high))
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
    alone = "a and b: mean difference +0 in one run, which says little."
    assert str(answer).startswith(alone if runs == 1 else "No significant difference between a and")


def test_a_constant_difference_of_few_runs_is_certain():
    assert compare("a", np.ones(3), "b", np.zeros(3)).p_value == 0.0


def test_holm_on_known_values():
    known = [Comparison("a", "b", (0.0,) * 10, p) for p in (0.01, 0.04, 0.03)]
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


@pytest.mark.parametrize("runs", [4, 12, 20])
def test_an_interval_and_its_p_value_never_disagree(runs):
    rng = np.random.default_rng(runs)
    outcomes = set()
    for _ in range(12):
        shifts = rng.uniform(0, 1.6, 5)
        raw = [compare("a", rng.normal(d, 1, runs), "b", np.zeros(runs)) for d in shifts]
        for one in holm(raw):
            low, high = one.interval
            assert one.significant == (low > 0 or high < 0)
            outcomes.add(one.significant)
    assert outcomes == {True, False}


def test_learners_are_compared_at_equal_epsilon():
    found = verdicts(list("wxyz"), [np.arange(12.0) + k for k in range(4)], [1, 1, 2, 2])
    assert [(c.first, c.second) for c in found] == [("w", "x"), ("y", "z")]
