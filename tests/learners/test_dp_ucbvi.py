"""UCBVI and DP-UCBVI: the compiled run is the printed algorithm, and the bars are reached."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, learn
from discreet.errors import DiscreetError
from discreet.learners.continual import make_learner
from discreet.learners.dp_ucbvi import DpUcbvi, Model
from discreet.mdp import RiverSwim, evaluate, plan, uniform_policy


def dp_learner(trust, **settings):
    mdp = RiverSwim(states=4, horizon=6)
    rng = np.random.default_rng(0)
    return make_learner(DpUcbvi, mdp, trust, 1000, rng, {"constants": "theory", **settings})


@pytest.mark.core
@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("variance", lambda iota, E: 2 * np.sqrt(0.25 * 9 * iota / 50)),
        ("reward", lambda iota, E: np.sqrt(2 * iota / 50)),
        ("privacy", lambda iota, E: 20 * 6 * 4 * E * iota / 50),
        ("correction", lambda iota, E: 4 * np.sqrt(iota) * np.sqrt(36 / 50)),
    ],
)
def test_each_term_of_the_bonus_by_hand(term, expected):
    # P is half and half over values 0 and 3: variance 0.25·9. Nothing ahead is known: H² = 36.
    learner = dp_learner(Central(1, 1e-6, mechanism="tree-gaussian"), terms=(term,))
    rows = np.zeros((6, 4, 2, 4))
    rows[..., :2] = 0.5
    model = Model(rows, np.zeros((6, 4, 2)), np.full((6, 4, 2), 50.0))
    iota = np.log(30 * 6 * 4 * 2 * 1000 * 6 / 0.1)
    error = float(learner.errors(np.array([7]))[0])
    bonus = learner.bonus(2, model, np.array([0.0, 3.0, 0.0, 0.0]), 7)
    np.testing.assert_allclose(bonus, expected(iota, error))


def test_the_correction_shrinks_with_the_visits_ahead():
    learner = dp_learner(NoPrivacy(), terms=("correction",))
    rows = np.full((6, 4, 2, 4), 0.25)
    iota = np.log(30 * 6 * 4 * 2 * 1000 * 6 / 0.1)
    n = 1e15
    model = Model(rows, np.zeros((6, 4, 2)), np.full((6, 4, 2), n))
    near = 1e6 * 6**3 * 4 * 2 * iota**2 / (2 * n) + 1e6 * 6**6 * 4**4 * 4 * iota**4 / (2 * n) ** 2
    bonus = learner.bonus(0, model, np.zeros(4), 0)
    np.testing.assert_allclose(bonus, 4 * np.sqrt(iota) * np.sqrt(near / n))
    assert learner.bonus(5, model, np.zeros(4), 0).max() == 0  # nothing is ahead of the last step


def test_the_error_is_that_of_the_actual_noise():
    learner = dp_learner(Central(1, mechanism="tree-laplace"))
    errors = learner.errors(np.arange(9))
    assert errors[0] == 0
    assert errors[4] == errors[8] < errors[7]  # one node against three
    local = dp_learner(Local(1, mechanism="laplace")).errors(np.array([100, 900]))
    assert 2.5 < local[1] / local[0] < 3.1  # about the root of the number of users


def test_without_privacy_it_learns():
    regrets = []
    for seed in range(5):
        mdp = RiverSwim(states=4, horizon=6, relabel=seed)
        regrets.append(learn(mdp, learner="ucbvi", episodes=20_000, seed=seed).final_regret)
    assert np.mean(regrets) <= 150


def test_printed_constants_do_not_learn():
    """Every Q value sits at the cap, so ties decide: the regret is the uniform policy's."""
    mdp = RiverSwim(states=4, horizon=6, relabel=0)
    gap = plan(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    trust = Central(1, 1e-6, mechanism="tree-gaussian")
    result = learn(mdp, learner="dp-ucbvi", trust=trust, episodes=2000, constants="theory")
    assert abs(result.final_regret / (2000 * gap) - 1) < 0.02


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"constants": "printed"}, "theory"),
        ({"bonus_skale": 1}, "bonus_scale"),
        ({"terms": ("variances",)}, "variance"),
        ({"cap": "H"}, "remaining"),
        ({"failure": 0}, "failure"),
        ({"clip": 1}, "True or False"),
    ],
)
def test_bad_settings_get_one_sentence(settings, words):
    mdp = RiverSwim(states=3, horizon=3)
    with pytest.raises(DiscreetError, match=words):
        learn(mdp, learner="dp-ucbvi", episodes=10, **settings)
