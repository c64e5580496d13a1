"""Every mechanism of the library, audited: exact guarantees hold, printed ones are called out."""

import pytest

from discreet.auditing import check_mechanism
from discreet.auditing.cases import entries
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from helpers.auditing import additive, bitwise, exact_view

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
