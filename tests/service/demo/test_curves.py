"""Curves: exact regret of manifests, percentiles of simulated runs."""

from types import SimpleNamespace

import numpy as np
import pytest

import discreet
from discreet.learners.result import RegretCurve
from discreet.mdp import evaluate, plan
from discreet.service.demo.run import Arrangement, final, real_curve, simulate, spread_of


def test_regret_of_manifests_is_users_times_the_loss_of_their_policies():
    mdp = Arrangement().home.mdp
    worst = np.zeros((mdp.horizon, mdp.shape.states), int)
    best = plan(mdp).policy.actions
    manifests = [
        SimpleNamespace(users=30, policy=worst.tolist()),
        SimpleNamespace(users=70, policy=best.tolist()),
    ]
    curve = real_curve(mdp, manifests)
    loss = plan(mdp).value - evaluate(mdp, discreet.mdp.DeterministicPolicy(worst))
    seen = dict(zip(curve.episodes.tolist(), curve.values.tolist(), strict=True))
    assert seen[1] == pytest.approx(loss) and loss > 0.1
    assert seen[20] == pytest.approx(20 * loss) and final(curve) == pytest.approx(30 * loss)
    assert max(seen) == 100 and seen[max(k for k in seen if k < 100)] == final(curve)


def test_a_band_is_made_of_percentiles():
    curves = [RegretCurve(np.array([0, 10]), np.array([0.0, float(top)])) for top in range(101)]
    band = spread_of(curves, 10, points=3)
    assert band.middle[-1] == 50 and band.interval == (2.5, 97.5)
    assert band.low[-1] == 2.5 and band.high[-1] == 97.5


def test_simulated_runs_are_of_the_same_learner():
    told = []
    band = simulate(Arrangement(users=100), 3, told.append)
    assert told == [1, 2, 3] and len(set(band.finals.tolist())) > 1
    assert band.users[-1] == 100
