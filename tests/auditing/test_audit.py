"""Every mechanism of the library, audited: exact guarantees hold, printed ones are called out."""

import json
import math

import numpy as np
import pytest

from discreet.auditing import check_mechanism
from discreet.auditing.attack import epsilon_low
from discreet.auditing.cases import entries, find
from discreet.auditing.neighbours import opposites
from discreet.auditing.probes import outcomes
from discreet.auditing.run import AuditRow, audit
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from helpers.auditing import Enumerated, additive, bitwise, exact_view

EXACT = [entry for entry in entries() if entry.calibration == "exact"]
PAPER = {entry.name: entry for entry in entries() if entry.calibration == "paper"}


@pytest.mark.parametrize("entry", EXACT, ids=lambda e: e.name)
def test_exact_guarantees_hold_and_are_not_wasteful(entry):
    epsilon, delta = entry.claimed
    delivered = exact_view(entry.small(), users=1).epsilon(delta)
    assert delivered <= epsilon * (1 + 1e-7)
    assert delivered > 0.94 * epsilon


@pytest.mark.parametrize(
    "name",
    [
        "central/gaussian",
        "central/tree-signed",
        "local/split",
        "shuffle/bits",
        "shuffle/histogram",
    ],
)
def test_mechanisms_are_fit_for_use(name):
    assert check_mechanism(name).problems == ()


@pytest.mark.parametrize("users", [1, 7, 1000, 100_000])
def test_shuffled_noise_holds_for_batches_of_all_sizes(users):
    plan = Shuffle(epsilon=1, delta=1e-6, mechanism="bits").calibrate(Shape(1, 2, 2))
    assert 0.99 < additive(plan, users=users).epsilon(1e-6) <= 1.0


def test_one_of_two_honest_users_is_enough_noise():
    plan = Shuffle(epsilon=1, delta=1e-6, honest=0.5, mechanism="bits").calibrate(Shape(1, 2, 2))
    assert additive(plan, users=100).epsilon(1e-6) < 0.75  # all honest: much better than guaranteed


def test_printed_constants():
    delivered = {n: exact_view(e.small()).epsilon(e.claimed[1]) for n, e in PAPER.items()}
    assert delivered["local/laplace"] == pytest.approx(2.0)
    assert delivered["central/tree-laplace"] == pytest.approx(2.0)  # K = 8: L = log2 K
    assert delivered["local/gaussian"] > 4
    assert delivered["shuffle/bits"] < 0.11  # far too much noise, in the view of sums


def test_printed_tree_at_the_length_of_the_papers():
    """K = 2e4: 15 levels against log2 K = 14.29."""
    with pytest.warns(UserWarning, match="deliver"):
        plan = Central(epsilon=1, calibration="paper").calibrate_stream(
            Shape(2, 2, 6), episodes=20_000
        )
    assert plan.guarantee.epsilon == pytest.approx(2.0996, abs=1e-3)


@pytest.mark.parametrize("episodes", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("mechanism", ["tree-laplace", "tree-signed", "toeplitz"])
def test_streams_of_awkward_lengths(mechanism, episodes, stationary):
    """A tree of 2^L leaves releases its root, too: no user may be in more than L nodes."""
    delta = 1e-6 if mechanism == "toeplitz" else 0
    plan = Central(epsilon=1, delta=delta, mechanism=mechanism).calibrate_stream(
        Shape(1, 2, 2),
        episodes=episodes,
        stationary=stationary,
        statistics=("visits",),
    )
    assert 0.99 < additive(plan).epsilon(delta) <= 1 + 1e-7
    assert bitwise(plan)


@pytest.mark.parametrize("statistics", [("visits",), ("transitions", "rewards")])
@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_subsets_of_statistics(statistics, epsilon):
    shape = Shape(2, 2, 3)
    pure = Central(epsilon=epsilon).calibrate(shape, statistics=statistics)
    assert additive(pure).epsilon(0.0) == pytest.approx(epsilon)
    loose = Central(epsilon=epsilon, delta=1e-5).calibrate(shape, statistics=statistics)
    assert 0.99 * epsilon < additive(loose).epsilon(1e-5) <= epsilon * (1 + 1e-9)


def test_reports_pooled_after_the_noise():
    plan = Local(epsilon=1, delta=1e-5, mechanism="bounded").calibrate_stream(
        Shape(1, 2, 2), episodes=2, stationary=True, statistics=("visits",)
    )
    assert 0.1 < additive(plan).epsilon(1e-5) <= 1.0


def test_local_reports_are_listed_one_by_one():
    plan = Local(epsilon=2).calibrate(Shape(1, 2, 2))
    seen = Enumerated(plan)
    assert seen.epsilon(0.0) == pytest.approx(2.0)
    assert seen.delta(2.0) < 1e-12 < 0.01 < seen.delta(1.0)


def test_randomised_data_are_not_mistaken_for_additive_noise():
    plan = Local(epsilon=1).calibrate(Shape(1, 2, 1))
    with pytest.raises(UnsupportedError):
        additive(plan)


def test_opposite_users_share_nothing():
    one, other = (u.counts(Shape(2, 2, 3)) for u in opposites(Shape(2, 2, 3)))
    assert not (one.transitions * other.transitions).any()
    assert np.abs(one.rewards - other.rewards).sum() == 6


def test_outcomes_of_a_small_protocol():
    seen = outcomes(lambda s: bytes([s.binomial(2, 0.5, 1)[0] + s.table(np.array([1, 3]), 1)[0]]))
    assert seen == pytest.approx({b"\0": 1 / 16, b"\1": 5 / 16, b"\2": 7 / 16, b"\3": 3 / 16})


def test_attack_never_exceeds_the_truth_and_comes_close():
    """Randomised response with epsilon 1: the bound stays below, and within a third of it."""
    rng = np.random.default_rng(0)
    keep = math.e / (1 + math.e)
    first, second = rng.random((2, 20_000, 1)) < np.array([keep, 1 - keep])[:, None, None]
    low = epsilon_low(first.astype(float), second.astype(float), 0.0)
    assert 0.7 < low <= 1.0
    same = rng.normal(size=(2, 4000, 3))
    assert epsilon_low(same[0], same[1], 0.0) == 0.0


def test_attack_refuses_samples_that_do_not_match():
    with pytest.raises(InvalidInputError, match="runs"):
        epsilon_low(np.zeros((3, 1)), np.zeros((3, 1)), 0.0)


def test_rows_for_scripts():
    exact = audit(["central/laplace"], quick=True)[0]
    assert exact.holds and exact.empirical_epsilon_low <= exact.exact_epsilon == 1.0
    assert set(exact.to_dict()) >= {
        "mechanism",
        "calibration",
        "claimed",
        "exact_epsilon",
        "empirical_epsilon_low",
        "holds",
    }
    broken = AuditRow("x", "exact", 1.0, 0.0, math.inf, 1.0, 0.0, "JDP")
    assert not broken.holds and broken.to_dict()["exact_epsilon"] is None
    json.dumps(broken.to_dict(), allow_nan=False)


def test_an_attack_alone_can_convict():
    assert not AuditRow("x", "exact", 1.0, 0.0, 1.0, 0.0, 1.5, "JDP").holds


def test_names():
    assert {e.trust for e in find("laplace")} == {"central", "local"}
    with pytest.raises(UnknownNameError, match="did you mean 'central/gaussian'"):
        find("central/gausian")
