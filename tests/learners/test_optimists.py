"""The optimists: factors by hand, widths that cover the noise, the kernel beside plain NumPy."""

import math

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, learn
from discreet.errors import DiscreetError
from discreet.learners import optimists as kernels
from discreet.learners.continual import make_learner
from discreet.learners.continual import planned as planned_by
from discreet.learners.optimists import (
    Column,
    DpUcbvi,
    PrivateUcbPo,
    PrivateUcbVi,
    Pucb,
    optimistic_policy,
)
from discreet.mdp import RiverSwim, evaluate, solve, uniform_policy
from discreet.privacy.projection.valid_counts import valid_counts
from discreet.privacy.simulation.users import no_counts
from helpers.compiled import planned, random_counts


def dp_learner(trust, **settings):
    mdp = RiverSwim(states=4, horizon=6)
    rng = np.random.default_rng(0)
    return make_learner(DpUcbvi, mdp, trust, 1000, rng, {"constants": "theory", **settings})


@pytest.mark.core
@pytest.mark.parametrize("term", ["variance", "reward", "privacy", "correction"])
def test_each_factor_of_the_bonus_by_hand(term):
    """Equation 31: a term that is not chosen is zero."""
    learner = dp_learner(Central(1, mechanism="tree-laplace"), terms=(term,))
    S, A, H, iota = 4, 2, 6, np.log(30 * 6 * 4 * 2 * 1000 * 6 / 0.1)
    E = float(learner.errors(np.array([7]))[0])
    found = learner.coefficients(np.array([7]))[0]
    expected = {
        "variance": (Column.VARIANCE, 2 * np.sqrt(iota)),
        "reward": (Column.ROOT, np.sqrt(2 * iota)),
        "privacy": (Column.LINEAR, 20 * H * S * E * iota),
        "correction": (Column.CORRECTION, 16 * iota),
    }
    for name, (column, value) in expected.items():
        assert found[column] == pytest.approx(value if name == term else 0.0)
    assert found[Column.ERROR] == E
    assert found[Column.NEAR] == pytest.approx(1e6 * H**3 * S * A * iota**2)
    assert found[Column.NEAR2] == pytest.approx(1e6 * H**4 * S**4 * A**2 * iota**4 * (E**2 + H**2))


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
    gap = solve(mdp).value - evaluate(mdp, uniform_policy(mdp.shape))
    trust = Central(1, mechanism="tree-laplace")
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


HORIZON, STATES, CHOICES = 3, 3, 2


def row(**factors):
    """Coefficients by name, the others zero."""
    out = np.zeros(len(Column))
    for name, value in factors.items():
        out[Column[name.upper()]] = value
    return out


def run(counts, horizon=HORIZON, seed=0, start=None, **factors):
    memory = np.full((1, horizon, *counts[1].shape[1:]), float(horizon))
    memory = memory if start is None else start
    return planned(optimistic_policy, row(**factors), counts, memory=memory, seed=seed)


def induction(P, r, bonus, horizon=HORIZON, remaining=True, bonus_needs=lambda h, V, P: 0.0):
    """Q ``[H, S, A]`` = clip(r + P·V + b, 0, cap), stationary, in plain NumPy."""
    values, q = np.zeros(P.shape[-1]), np.zeros((horizon, *r.shape))
    for h in reversed(range(horizon)):
        cap = horizon - h if remaining else horizon
        q[h] = np.clip(r + P @ values + bonus + bonus_needs(h, values, P), 0.0, cap)
        values = q[h].max(axis=-1)
    return q


@pytest.mark.core
def test_the_names_of_the_columns_are_the_numbers_of_the_kernels():
    for column in Column:
        assert getattr(kernels, f"_{column.name}") == column.value
    assert len(Column) == 14


@pytest.mark.parametrize("error", [0.0, 12.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_valid_model_is_that_of_the_post_processing(seed, error):
    counts = random_counts(seed, HORIZON, noise=4.0 if error else 0.0)
    found = run(counts, error=error, remaining=1)
    valid = valid_counts(counts[0], counts[1], error)
    known = valid.visits > 0
    expected = valid.transitions[known] / valid.visits[known][:, None]
    np.testing.assert_allclose(found.model[known][:, :STATES], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.model[..., STATES + 1], valid.visits, rtol=1e-9)
    means = np.clip(counts[2][known] / valid.visits[known], 0.0, 1.0)
    np.testing.assert_allclose(found.model[known][:, STATES], means, rtol=1e-9, atol=1e-12)


def test_signed_models_divide_by_what_counts_as_visits():
    transitions, visits, rewards = random_counts(1, 1, noise=3.0)
    visits[0, 1, 0] = -20.0
    floored = run((transitions, visits, rewards), model=1, error=5.0, remaining=1)
    D = np.maximum(1.0, visits + 5.0)
    np.testing.assert_allclose(floored.model[..., :STATES], transitions / D[..., None])
    np.testing.assert_allclose(floored.model[..., STATES + 1], D)
    plain = run((transitions, visits, rewards), model=2, remaining=1)
    np.testing.assert_allclose(plain.model[..., :STATES], transitions / visits[..., None])


@pytest.mark.parametrize(
    ("factors", "bonus"),
    [
        ({}, lambda n: 0.0),
        ({"root": 0.6}, lambda n: 0.6 / np.sqrt(n)),
        ({"linear": 0.9}, lambda n: 0.9 / n),
        ({"square": 3.0}, lambda n: 3.0 / n**2),
        ({"root": 0.5, "shift": 2.0}, lambda n: 0.5 / np.sqrt(n - 2.0)),
        ({"linear": 0.3, "square": 0.4}, lambda n: (0.3 + 0.4 / n) / n),
    ],
)
def test_terms_that_need_no_values(factors, bonus):
    transitions, visits, rewards = random_counts(2, 1)
    found = run((transitions, visits, rewards), remaining=1, **factors)
    P, r, n = transitions[0] / visits[0][..., None], rewards[0] / visits[0], visits[0]
    np.testing.assert_allclose(found.memory[0], induction(P, r, bonus(n)), rtol=1e-10)


def test_the_variance_term_is_the_spread_of_what_follows():
    transitions, visits, rewards = random_counts(3, 1)
    P, r, n = transitions[0] / visits[0][..., None], rewards[0] / visits[0], visits[0]

    def spread(h, V, P):
        return 0.8 * np.sqrt(np.maximum(P @ V**2 - (P @ V) ** 2, 0.0) / n)

    found = run((transitions, visits, rewards), remaining=1, variance=0.8)
    expected = induction(P, r, 0.0, bonus_needs=spread)
    np.testing.assert_allclose(found.memory[0], expected, rtol=1e-9)


def test_the_correction_looks_one_step_ahead_and_not_beyond_the_last():
    transitions, visits, rewards = random_counts(4, 1)
    P, r, n = transitions[0] / visits[0][..., None], rewards[0] / visits[0], visits[0]
    near, near2, correction = 2.0, 5.0, 0.3
    ahead = np.minimum(near / n.sum(axis=-1) + near2 / n.sum(axis=-1) ** 2, HORIZON**2)

    def extra(h, V, P):
        return np.sqrt(correction * (P @ ahead) / n) if h < HORIZON - 1 else 0.0

    found = run(
        (transitions, visits, rewards), remaining=1, correction=correction, near=near, near2=near2
    )
    expected = induction(P, r, 0.0, bonus_needs=extra)
    np.testing.assert_allclose(found.memory[0], expected, rtol=1e-9)


def test_the_ceiling_of_the_correction_is_the_square_of_the_horizon():
    """Nobody has been anywhere at the next step: H² for every state, per step of counts."""
    transitions, visits, rewards = random_counts(5, HORIZON)
    transitions[1:], visits[1:], rewards[1:] = 0.0, 0.0, 0.0
    found = run((transitions, visits, rewards), correction=1e-3, near=1.0)
    P, r, n = transitions[0] / visits[0][..., None], rewards[0] / visits[0], visits[0]
    expected = np.clip(r + P @ np.full(STATES, 3.0) + np.sqrt(1e-3 * 9 / n), 0.0, 3.0)
    np.testing.assert_allclose(found.memory[0, 0], expected, rtol=1e-9)


def test_too_few_visits_are_worth_the_cap():
    transitions, visits, rewards = random_counts(6, 1)
    visits[0, 1, 0] = transitions[0, 1, 0] = 0.0
    found = run((transitions, visits, rewards), remaining=1)
    assert found.memory[0, :, 1, 0].tolist() == [3.0, 2.0, 1.0]
    whole = run((transitions, visits, rewards))
    assert whole.memory[0, :, 1, 0].tolist() == [3.0, 3.0, 3.0]
    few = run((transitions, visits, rewards), remaining=1, minimum=1e6)
    assert (few.memory[0, 2] == 1.0).all()


def test_clipped_values_never_grow():
    counts = random_counts(7, 1)
    low = np.full((1, HORIZON, STATES, CHOICES), 0.25)
    kept = run(counts, start=low, remaining=1, clip=1, root=5.0)
    assert (kept.memory <= 0.25).all()
    free = run(counts, start=low, remaining=1, root=5.0)
    assert (free.memory > 0.25).any()


def test_values_below_zero_are_zero():
    transitions, visits, rewards = random_counts(8, 1)
    found = run((transitions, visits, rewards - 1e6), model=2, remaining=1)
    assert (found.memory[0, -1] == 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_renamed_actions_give_the_renamed_policy(seed):
    counts = random_counts(seed, HORIZON)
    factors = {"root": 0.4, "variance": 0.3, "correction": 0.1, "near": 1.0, "remaining": 1}
    one = run(counts, **factors)
    other = run(tuple(np.flip(part, axis=2) for part in counts), **factors)
    assert np.array_equal(other.actions, CHOICES - 1 - one.actions)
    np.testing.assert_allclose(np.flip(other.memory, axis=3), one.memory, rtol=1e-12)


def test_equal_actions_are_drawn_at_random():
    transitions, visits, rewards = (
        np.ones((1, 2, 3, 2)),
        np.full((1, 2, 3), 2.0),
        np.ones((1, 2, 3)),
    )
    chosen = [
        run((transitions, visits, rewards), seed=seed, remaining=1).actions for seed in range(80)
    ]
    counts = np.bincount(np.concatenate(chosen).ravel(), minlength=3)
    assert abs(counts - counts.sum() / 3).max() < 5 * np.sqrt(counts.sum() * 2 / 9)


def optimise(counts, weights, rate, horizon=HORIZON):
    memory = np.full((2, horizon, STATES, CHOICES), float(horizon))
    memory[1] = weights
    factors = row(remaining=1, root=0.3, rate=rate)
    return planned(optimistic_policy, factors, counts, memory=memory)


def test_policy_optimisation_plays_what_it_had_and_moves_by_mirror_ascent():
    counts, rng = random_counts(9, 1), np.random.default_rng(9)
    weights = rng.dirichlet(np.ones(CHOICES), (HORIZON, STATES))
    found = optimise(counts, weights, 0.7)
    np.testing.assert_array_equal(found.probabilities, weights)
    values = (weights * found.memory[0]).sum(axis=-1)
    np.testing.assert_allclose(found.values[:-1], values, rtol=1e-12)
    moved = weights * np.exp(0.7 * found.memory[0])
    np.testing.assert_allclose(
        found.memory[1], moved / moved.sum(axis=-1, keepdims=True), rtol=1e-12
    )


def test_evaluation_is_of_the_policy_not_of_the_best_action():
    """All weight on one action: its Q is the value, whatever the other is worth."""
    counts = random_counts(10, 1)
    always = np.zeros((HORIZON, STATES, CHOICES))
    always[..., 1] = 1.0
    found = optimise(counts, always, 0.0)
    np.testing.assert_array_equal(found.values[:-1], found.memory[0, ..., 1])
    np.testing.assert_array_equal(found.memory[1], always)


MDP = RiverSwim(states=3, horizon=4)
S, A, H, K = 3, 2, 4, 200


def learner_of(kind, trust=None, **settings):
    return make_learner(
        kind,
        MDP,
        trust or Central(5),
        K,
        np.random.default_rng(0),
        {"constants": "theory"} | settings,
    )


def counts_and_noise(rng, error):
    """True counts of one pair, and noisy ones with every counter off by at most ``error``."""
    moves = rng.multinomial(rng.integers(1, 400), rng.dirichlet(np.ones(S)))
    earned = rng.binomial(moves.sum(), rng.random())
    extreme = rng.choice([-error, error], size=S + 2)
    mild = rng.uniform(-error, error, size=S + 2)
    noise = np.where(rng.random(S + 2) < 0.7, extreme, mild)
    return moves, earned, moves + noise[:S], moves.sum() + noise[S], earned + noise[S + 1]


def test_the_width_of_pucb_covers_the_noise():
    """With N~ > 2E, estimates from noisy counts are off by at most the last term."""
    rng = np.random.default_rng(5)
    tight = 0.0
    for _ in range(4000):
        E = rng.uniform(0.5, 40)
        moves, earned, noisy, n, sums = counts_and_noise(rng, E)
        if n <= 2 * E:
            continue
        values = H * rng.integers(0, 2, size=S)
        plain = earned / moves.sum() + moves @ values / moves.sum()
        private = sums / n + noisy @ values / n
        width = (1 + S * H) * (3 * E / n + 2 * E**2 / n**2)
        assert abs(private - plain) <= width
        tight = max(tight, abs(private - plain) / width)
    assert tight > 0.3  # the width is not idle


def test_the_factors_of_pucb():
    learner = learner_of(Pucb)
    users = np.array([50])
    E = learner.errors(users)[0]
    root, linear, square = learner.coefficients(users)[
        0, [Column.ROOT, Column.LINEAR, Column.SQUARE]
    ]
    log = math.log(9 * S * A * H * K * H / 0.1)
    assert root == pytest.approx((H + 1) * math.sqrt(2 * log))
    assert linear == pytest.approx((1 + S * H) * 3 * E)
    assert square == pytest.approx((1 + S * H) * 2 * E**2)


def test_the_factors_of_value_iteration_and_policy_optimisation():
    users = np.array([50])
    L_c = math.sqrt(2 * math.log(4 * S * A * K * H / 0.1))
    L_p = math.sqrt(4 * S * math.log(6 * S * A * K * H / 0.1))
    for kind, root in ((PrivateUcbVi, L_c + H * L_c), (PrivateUcbPo, L_c + H * L_p)):
        learner = learner_of(kind)
        E = learner.errors(users)[0]
        found = learner.coefficients(users)[0]
        assert found[Column.ROOT] == pytest.approx(root)
        assert found[Column.LINEAR] == pytest.approx(3 * E + H * (S * E + 2 * E))


@pytest.mark.core
def test_a_count_within_twice_the_error_says_nothing_to_pucb():
    learner = learner_of(Pucb)
    row = learner.coefficients(np.array([50]))[0]
    E = learner.errors(np.array([50]))[0]
    assert row[Column.MINIMUM] == 2 * E
    assert row[Column.SHIFT] == E


@pytest.mark.parametrize("constants", ["theory", "practical"])
def test_policy_optimisation_starts_uniform_and_moves_by_its_rate(constants):
    """Nothing is known: all Q values are equal, so the mirror step changes nothing."""
    learner = learner_of(PrivateUcbPo, NoPrivacy(), constants=constants)
    policy = planned_by(learner, no_counts(learner.mechanism))
    np.testing.assert_allclose(policy.distribution(MDP.shape), 1 / A)
    np.testing.assert_allclose(learner.room[0].memory[1], 1 / A)
    scale = {"theory": 1.0, "practical": 20.0}[constants]
    assert learner.rate == pytest.approx(scale * math.sqrt(2 * math.log(A) / K) / H)
