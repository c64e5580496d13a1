"""DP-APVI beside `fit`: its pessimism by hand, and that it is made of one release."""

import math

import numpy as np
import pytest

from discreet import Central, Local, NoPrivacy, make
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.mdp import evaluate, plan, sample_counts, sample_trajectories, uniform_policy
from discreet.offline import release as releasing
from discreet.offline.dp_apvi import PRACTICAL, dp_apvi, pessimistic_policy
from discreet.offline.release import Randomness
from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.ledger import Budget, Cost, Ledger
from discreet.privacy.statistics import PrivateCounts

MDP = make("RandomMDP", states=3, actions=2, horizon=3, concentration=0.5, seed=5)


def people(users, seed=0):
    return sample_counts(MDP, uniform_policy(MDP.shape), users, np.random.default_rng(seed))


def test_without_noise_and_pessimism_it_finds_the_best_policy():
    found = dp_apvi(people(100_000), NoPrivacy(), MDP.full_rewards, scale=1e-9, start=MDP.start)
    assert evaluate(MDP, found) == pytest.approx(plan(MDP).value, abs=0.01)


def test_with_noise_it_learns_by_the_practical_scale_and_not_as_printed():
    common = {"start": MDP.start, "sampler": "simulation", "seed": 0}
    trust, best = Central(1, 1e-6), plan(MDP).value
    printed = dp_apvi(people(20_000), trust, MDP.full_rewards, **common)
    practical = dp_apvi(people(20_000), trust, MDP.full_rewards, scale=PRACTICAL, **common)
    again = dp_apvi(people(20_000), trust, MDP.full_rewards, **common)
    drawn = np.bincount(printed.actions.ravel()) / printed.actions.size
    assert len(drawn) == 2 and (drawn > 0.15).all()  # all values are zero: ties are drawn,
    assert (printed.actions == again.actions).all()  # by the seed
    assert evaluate(MDP, practical) > 0.99 * best


def test_its_pessimism_is_the_printed_one():
    """One step before the end: two actions whose values differ by what their visits leave open.

    Both lead to state 0 (worth 1) or 1 (worth 0) half of the time. Without noise E = 0 and the
    difference of Gamma is sqrt(2·iota·Var)·(1/sqrt(n1) - 1/sqrt(n2)).
    """
    visits = np.array([100.0, 1000.0])
    iota = math.log(2 * 2 * 2 / 0.1)
    gap = math.sqrt(2 * iota / 4) * (visits[0] ** -0.5 - visits[1] ** -0.5)
    counts = np.zeros((2, 2, 2, 2))
    counts[0, 0] = visits[:, None] / 2
    counts[1, :, :, 0] = 1e9
    for beyond, chosen in ((0.99 * gap, 1), (1.01 * gap, 0)):
        rewards = np.zeros((2, 2, 2))
        rewards[0, 0] = [0.5 + beyond, 0.5]
        rewards[1, 0] = 1.0
        noise = {"transitions": 0.0, "visits": 0.0}
        mask = np.ones((2, 2, 2), bool)
        released = PrivateCounts(1100, counts, counts.sum(axis=-1), None, noise, mask, NO_GUARANTEE)
        found = pessimistic_policy(released, rewards, 0.1, 1.0, np.random.default_rng(0))
        assert found.actions[0, 0] == chosen


def test_one_release_is_all_it_sees_and_is_charged(tmp_path, monkeypatch):
    kept, usual = [], releasing.release

    def once(*arguments, **options):
        kept.append(usual(*arguments, **options))
        return kept[0]

    monkeypatch.setattr(releasing, "release", once)
    rng, drawn = np.random.default_rng, Randomness.of
    fixed = Randomness(drawn("secure", None).sampler, rng(0))
    monkeypatch.setattr(Randomness, "of", lambda *_: fixed._replace(rounding=rng(0)))  # ties
    logs = [sample_trajectories(MDP, uniform_policy(MDP.shape), 300, rng(i)) for i in range(2)]
    ledger = Ledger(tmp_path / "l", budget=Budget(2, 1e-5))
    names = [f"u{i}" for i in range(300)]
    one, two = (
        dp_apvi(
            log, Central(1, 1e-6), MDP.full_rewards, scale=1e-4, shape=MDP.shape, users=names,
            ledger=ledger,
        )
        for log in logs
    )  # fmt: skip
    assert len(kept) == 2 and (one.actions == two.actions).all()
    assert ledger.record(0.0, 0.0, users=names).before.epsilon == Cost.of(2.0).epsilon


def test_refusals():
    with pytest.raises(UnsupportedError, match="Central"):
        dp_apvi(people(10), Local(1), MDP.full_rewards)
    with pytest.raises(InvalidInputError, match="scale"):
        dp_apvi(people(10), Central(1), MDP.full_rewards, scale=0)
    with pytest.raises(InvalidInputError, match="rewards"):
        dp_apvi(people(10), Central(1), np.ones(3))
