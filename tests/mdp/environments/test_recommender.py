"""Recommender carries the published numbers it quotes."""

import numpy as np
import pytest

from discreet.mdp import make

RECOMMENDER = make("Recommender")


def test_average_appeal_is_that_of_movielens():
    fresh = RECOMMENDER.rewards[0, [0, 7]]
    assert fresh.mean() == pytest.approx(0.55)
    np.testing.assert_allclose(fresh[0], fresh[1][::-1])


def test_repeats_tire_and_variety_recovers():
    likes = RECOMMENDER.rewards[0]
    fresh, once, often = likes[0, 0], likes[1, 0], likes[2, 0]
    assert once == pytest.approx(0.7 * fresh)
    assert often == pytest.approx(0.7 * once)
    assert likes[3, 0] == fresh  # after another kind


def test_people_leave_at_the_quoted_rates_and_stay_away():
    moves, likes = RECOMMENDER.transitions[0], RECOMMENDER.rewards[0]
    leaving = moves[:14, :, 14]
    np.testing.assert_allclose(leaving, 0.03 * likes[:14] + 0.25 * (1 - likes[:14]))
    assert (moves[14, :, 14] == 1).all()
    assert not likes[14].any()


def test_tastes_never_mix():
    moves = RECOMMENDER.transitions[0]
    assert not moves[:7, :, 7:14].any()
    assert not moves[7:14, :, :7].any()
