"""`discreet.evaluate_policy`: its value, its interval, and that one release is all it sees."""

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, evaluate_policy, make
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp import (
    DeterministicPolicy,
    MixturePolicy,
    Shape,
    TabularMDP,
    Trajectories,
    evaluate,
    sample_counts,
    sample_trajectories,
    uniform_policy,
)
from discreet.mdp.policies import DEFER, DeferringPolicy
from discreet.offline import release as releasing

MDP = make("RandomMDP", states=3, actions=2, horizon=3, concentration=0.5, seed=5)
SHAPE = MDP.shape
FIRST = np.zeros((3, 3), np.int64)
TRUST = Central(epsilon=1, delta=1e-6)


def people(users, seed=0):
    return sample_counts(MDP, uniform_policy(SHAPE), users, np.random.default_rng(seed))


def evaluated(data, policy=FIRST, trust=TRUST, **options):
    options = {"start": MDP.start, "sampler": "simulation", "seed": 0, **options}
    return evaluate_policy(data, policy, trust, **options)


def test_without_noise_it_is_the_empirical_models_value():
    counts = people(2_000)
    visits = counts.visits
    model = TabularMDP(
        transitions=(counts.transitions + (visits == 0)[..., None] / 3)
        / np.maximum(visits, 1)[..., None],
        rewards=counts.rewards / np.maximum(visits, 1),
        initial=visits[0].sum(axis=1) / counts.users,
    )
    found = evaluated(counts, trust=NoPrivacy())
    assert found.value.value == pytest.approx(evaluate(model, FIRST))
    assert found.today.value == pytest.approx(counts.rewards.sum() / counts.users)
    assert found.unseen == 0


def test_the_error_is_that_of_noise_and_sampling():
    """Widths against the errors of 200 runs in which every source counts."""
    truth, today = evaluate(MDP, FIRST), evaluate(MDP, uniform_policy(SHAPE))
    found = [evaluated(people(3_000, seed), seed=seed) for seed in range(200)]
    for estimates, value in (
        ([f.value for f in found], truth),
        ([f.today for f in found], today),
    ):
        assert sum(e.low <= value <= e.high for e in estimates) >= 184
        errors = np.array([e.value - value for e in estimates])
        width = np.mean([e.high - e.low for e in estimates])
        assert 3.3 < width / errors.std() < 6
        assert abs(errors.mean()) < 0.3 * errors.std()
    without = np.mean([np.diff(evaluated(people(3_000, s), trust=NoPrivacy()).value[1:])
                       for s in range(20)])  # fmt: skip
    assert np.mean([f.value.high - f.value.low for f in found]) > 1.5 * without


def test_the_noise_is_in_the_error():
    """The same people, noise alone drawn anew: a quarter of it in the interval would show."""
    data = people(3_000)
    found = [evaluated(data, seed=seed).value for seed in range(150)]
    quiet = np.diff(evaluated(data, trust=NoPrivacy()).value[1:])[0] / (2 * 1.96)
    noise = np.std([e.value for e in found])
    stated = np.mean([e.high - e.low for e in found]) / (2 * 1.96)
    assert noise > quiet
    assert stated == pytest.approx(np.hypot(noise, quiet), rel=0.25)


@pytest.mark.parametrize("users", [30, 1_000])
@pytest.mark.parametrize("trust", [Central(rho=0.1), Central(0.3, 1e-6)], ids=str)
def test_a_policy_that_nobody_followed_is_worth_anything_and_no_crash(trust, users):
    """Where nothing is known the variance is rounding error, of either sign."""
    rng, shape = np.random.default_rng(0), Shape(states=3, actions=2, horizon=3)
    states, actions = rng.integers(3, size=(users, 4)), np.zeros((users, 3), int)
    for seed in range(10):
        data = Trajectories(states, actions, np.ones((users, 3)))
        found = evaluate_policy(
            data, np.ones((3, 3), int), trust, shape=shape, sampler="simulation", seed=seed
        )
        assert found.value.low == 0 and found.value.high == pytest.approx(3)


def test_deferring_follows_behaviour():
    """Whose probabilities nobody gives: with half of the states left to it, as in simulation."""
    actions = FIRST.copy()
    actions[:, 1] = DEFER
    policy = DeferringPolicy(actions)
    value = evaluate(MDP, policy.with_behaviour(uniform_policy(SHAPE), SHAPE.actions))
    found = evaluated(people(300_000), policy)
    assert found.value.low < value < found.value.high
    assert found.value.high - found.value.low < 0.05
    everywhere = evaluated(people(300_000), DeferringPolicy(np.full((3, 3), DEFER)))
    assert everywhere.value == everywhere.today


def test_what_nobody_did_may_be_worth_anything():
    data = sample_counts(MDP, FIRST, 100_000, np.random.default_rng(0))
    found = evaluated(data, 1 - FIRST)
    assert found.value[1:] == pytest.approx((0, 3))
    assert found.unseen == pytest.approx(1)
    assert "100% of the policy's steps" in str(found)


def test_known_rewards_narrow_the_interval():
    value = evaluate(MDP, FIRST)
    found = evaluated(people(30_000), rewards=MDP.full_rewards)
    usual = evaluated(people(30_000))
    assert found.value.low < value < found.value.high
    assert found.value.high - found.value.low < usual.value.high - usual.value.low


def test_the_release_is_all_that_an_evaluation_sees(monkeypatch):
    """Other people with the same release get the same evaluation, to the last bit."""
    kept, usual = [], releasing.release

    def once(*arguments, **options):
        kept.append(usual(*arguments, **options))
        return kept[0]

    monkeypatch.setattr(releasing, "release", once)
    one, two = evaluated(people(30_000, 1)), evaluated(people(30_000, 2), seed=9)
    assert len(kept) == 2
    assert one.to_dict() == two.to_dict()


def test_an_evaluation_is_charged_before_anything_is_drawn(tmp_path, monkeypatch):
    path = tmp_path / "people.ledger"
    episodes = sample_trajectories(MDP, uniform_policy(SHAPE), 50, np.random.default_rng(0))
    options = {"shape": SHAPE, "users": [f"u{i}" for i in range(50)], "ledger": path}

    def crash(*_, **__):
        assert path.exists()
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(releasing, "release", crash)
        with pytest.raises(MemoryError):
            evaluate_policy(episodes, FIRST, TRUST, **options)
    found = evaluate_policy(episodes, FIRST, TRUST, **options)
    assert found.account.before.epsilon == 1
    assert not found.guarantee.simulated
    assert "spent before" in str(found)


def test_the_value_of_today_is_charged_like_any_other(tmp_path):
    """A policy that defers everywhere asks for a release of the same people all the same."""
    path, today = tmp_path / "people.ledger", DeferringPolicy(np.full((3, 3), DEFER))
    for seed in (0, 1):
        episodes = sample_trajectories(MDP, uniform_policy(SHAPE), 50, np.random.default_rng(seed))
        users = [f"u{i}" for i in range(50)]
        found = evaluate_policy(episodes, today, TRUST, shape=SHAPE, users=users, ledger=path)
        assert found.account.spent.epsilon == 1 + seed


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"policy": np.zeros((2, 3), int)}, InvalidInputError, r"\(2, 3\)"),
        ({"policy": DeferringPolicy(np.zeros((2, 3), int))}, InvalidInputError, r"got \(2, 3\)"),
        (
            {"policy": MixturePolicy((DeterministicPolicy(FIRST),), [1.0])},
            InvalidInputError,
            "each of its components",
        ),
        ({"policy": FIRST + 2}, InvalidInputError, "action"),
        ({"trust": Local(1)}, UnsupportedError, "Logged episodes are in somebody's hands"),
        ({"start": np.ones(2, bool)}, InvalidInputError, "Expected start to be"),
        ({"shape": Shape(3, 2, 4)}, InvalidInputError, "one size of the problem"),
        ({"rewards": np.full((3, 2), 2.0)}, InvalidInputError, "rewards"),
    ],
)
def test_refusals(options, error, said):
    with pytest.raises(error, match=said):
        evaluated(people(10), **options)
