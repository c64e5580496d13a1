"""Bounds as callables: against the printed formulas, and how they grow."""

import math

import pytest

from discreet.learners.registry import get_learner, learner_names
from discreet.papers.bounds import BOUNDS, LOWER, VERSION_000, bounds_of

S, A, H, K, EPS = 4, 2, 6, 20_000, 0.5
T = K * H
SUPPORT = 7.0


@pytest.mark.parametrize(
    ("learner", "trust", "printed"),
    [
        # 003, Table 1 and Theorems 5.2 and 5.7
        ("dp-ucbvi", "none", math.sqrt(S * A * H**2 * T)),
        ("dp-ucbvi", "central", math.sqrt(S * A * H**2 * T) + S**2 * A * H**3 / EPS),
        ("dp-ucbvi", "local", math.sqrt(S * A * H**2 * T) + S**2 * A * math.sqrt(H**5 * T) / EPS),
        ("private-ucb-vi", "central", math.sqrt(S * A * H**3 * T) + S**2 * A * H**3 / EPS),
        (
            "private-ucb-vi",
            "local",
            math.sqrt(S * A * H**3 * T) + S**2 * A * math.sqrt(H**5 * T) / EPS,
        ),
        ("private-ucb-po", "central", math.sqrt(S**2 * A * H**3 * T) + S**2 * A * H**3 / EPS),
        ("pucb", "central", math.sqrt(S**2 * A * H**3 * T) + S**2 * A * H**3 / EPS),
        # 002, Theorem 5 and Table 1
        ("ldp-obi", "local", H * S * math.sqrt(A * T) + H**3 * S**2 * A * math.sqrt(K) / EPS),
        # 001, Theorem 11
        ("sdp-pe", "shuffle", math.sqrt(S * A * H**3 * K) + S**3 * A * H**6 / EPS),
        ("pe", "none", math.sqrt(S * A * H**3 * K)),
        # 004, Theorems 5.2 and 5.8
        ("private-uc-o-reps", "none", H * SUPPORT * math.sqrt(K)),
        ("private-uc-o-reps", "central", H * SUPPORT * math.sqrt(K) + S**2 * A * H**2 / EPS),
        (
            "private-uc-o-reps",
            "local",
            H * SUPPORT * math.sqrt(K) + S**2 * A * H**2 * math.sqrt(K) / EPS,
        ),
        (
            "private-uob-lbps",
            "central",
            H * SUPPORT * math.sqrt(K) + A * H * math.sqrt(S**3 * K) / EPS,
        ),
        (
            "private-uob-lbps",
            "local",
            H * SUPPORT * math.sqrt(K) + S**4 * A * H**2 * math.sqrt(K) / EPS,
        ),
    ],
)
def test_upper_bounds_are_the_printed_ones(learner, trust, printed):
    bound = BOUNDS[learner][trust]
    assert bound(S, A, H, K, EPS, support=SUPPORT) == pytest.approx(printed)
    assert bound.where


def test_version_000_has_bounds_of_its_own():
    """000, Theorems 6 and 11."""
    free = math.sqrt(S**2 * A * H**5 * K)
    assert VERSION_000["none"](S, A, H, K) == pytest.approx(free)
    assert VERSION_000["shuffle"](S, A, H, K, EPS) == pytest.approx(free + S**3 * A**2 * H**6 / EPS)


def test_the_worst_effective_support_is_that_of_the_paper():
    """004: C_M <= X·sqrt(A)."""
    bound = BOUNDS["private-uc-o-reps"]["none"]
    assert bound(S, A, H, K) == bound(S, A, H, K, support=S * math.sqrt(A))


@pytest.mark.parametrize(
    ("trust", "printed"),
    [
        ("none", H * math.sqrt(S * A * K)),
        ("local", H * math.sqrt(S * A * K) / (math.exp(EPS) - 1)),  # 002, Theorem 2
        ("central", H * math.sqrt(S * A * K) + S * A * H * math.log(K * H) / EPS),
        ("shuffle", H * math.sqrt(S * A * K) + S * A * H * math.log(K * H) / EPS),
    ],
)
def test_lower_bounds_are_the_printed_ones(trust, printed):
    assert LOWER[trust](S, A, H, K, EPS) == pytest.approx(printed)
    assert LOWER[trust](S, A, H, K) == pytest.approx(H * math.sqrt(S * A * K))


def test_local_privacy_costs_nothing_in_the_lower_bound_beyond_log_two():
    assert LOWER["local"](S, A, H, K, 0.7) == LOWER["none"](S, A, H, K)
    assert LOWER["local"](S, A, H, K, 1000.0) == LOWER["none"](S, A, H, K)


@pytest.mark.parametrize("name", learner_names())
def test_every_trust_model_of_a_bound_is_one_that_the_learner_takes(name):
    assert set(bounds_of(name)) <= set(get_learner(name).trusts)
    assert get_learner(name).bounds == bounds_of(name)


@pytest.mark.parametrize("learner", BOUNDS)
def test_bounds_grow_with_users_and_shrink_with_epsilon(learner):
    for trust, bound in BOUNDS[learner].items():
        assert bound(S, A, H, 4 * K, EPS) > bound(S, A, H, K, EPS)
        tight, loose = bound(S, A, H, K, 0.1), bound(S, A, H, K, 10.0)
        assert tight == loose if trust == "none" else tight > loose
