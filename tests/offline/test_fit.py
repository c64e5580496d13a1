"""`discreet.fit` as a whole: safety, deferring, bad input, privacy of what it returns."""

import numpy as np
import pytest

import discreet
from discreet import Central, NoPrivacy
from discreet.data import Padding, Vocabulary, read_table
from discreet.errors import BudgetError, InvalidInputError, UnsupportedError
from discreet.mdp import (
    Counts,
    Shape,
    Trajectories,
    evaluate,
    make,
    sample_counts,
    sample_trajectories,
    solve,
    uniform_policy,
)
from discreet.mdp.policies import DEFER
from discreet.offline import release as releasing
from discreet.privacy import Budget, Ledger
from discreet.privacy.ledger import Cost

pytestmark = pytest.mark.core

TRUST = Central(1, 1e-6)
MDP = make("DoubleChain")
PEOPLE = sample_trajectories(MDP, uniform_policy(MDP.shape), 400, np.random.default_rng(0))


def counted(users, mdp=MDP, seed=0, policy=None):
    rng = np.random.default_rng(seed)
    return sample_counts(mdp, uniform_policy(mdp.shape) if policy is None else policy, users, rng)


def rehearsed(data, trust=TRUST, seed=0, **options):
    return discreet.fit(data, trust, sampler="simulation", seed=seed, **options)


def value_of(found, mdp, behaviour):
    return evaluate(mdp, found.policy.with_behaviour(behaviour, mdp.shape.actions))


def test_with_many_users_it_finds_the_best_policy():
    found = rehearsed(counted(10_000_000), start=MDP.start)
    best, today = solve(MDP).value, evaluate(MDP, uniform_policy(MDP.shape))
    value = value_of(found, MDP, uniform_policy(MDP.shape))
    assert value == pytest.approx(best, rel=1e-3)
    assert today < found.lower_value <= value
    assert found.behaviour_value == pytest.approx(today, abs=4 * found.behaviour_error)


def test_with_few_users_it_defers_everywhere():
    found = rehearsed(counted(50), trust=Central(0.3, 1e-6))
    assert found.policy.defers.all()
    assert found.gain == 0
    assert "DEFERs everywhere" in str(found)


def test_more_privacy_never_helps_on_average():
    gains = {
        trust: np.mean([rehearsed(counted(20_000, seed=s), trust, s).gain for s in range(4)])
        for trust in (NoPrivacy(), Central(1, 1e-6), Central(0.1, 1e-6))
    }
    none, some, more = gains.values()
    assert none > some > more


def random_problem(seed):
    """A random model and a random behaviour, neither like those of the table."""
    rng = np.random.default_rng(seed)
    mdp = make(
        "RandomMDP",
        states=int(rng.integers(2, 5)),
        actions=int(rng.integers(2, 4)),
        horizon=int(rng.integers(1, 5)),
        concentration=float(rng.uniform(0.1, 1)),
        stationary=False,
        seed=seed,
    )
    return mdp, rng.dirichlet(np.full(mdp.shape.actions, 0.7), mdp.shape.visits[:2])


def test_it_is_hardly_ever_worse_than_behaviour_and_keeps_its_claims():
    worse, missed, runs, won = 0, 0, 0, 0.0
    for seed in range(40):
        mdp, behaviour = random_problem(seed)
        today = evaluate(mdp, behaviour)
        for users in (300, 3_000, 30_000, 300_000):
            data = counted(users, mdp, seed, behaviour)
            found = rehearsed(data, TRUST, seed, start=mdp.start)
            value = value_of(found, mdp, behaviour)
            runs += 1
            worse += value < today - 1e-9
            missed += found.lower_value > value + 1e-9
            won += value - today
    assert runs == 160
    assert worse <= 2
    assert missed <= 8
    assert won / runs > 0.1


def strangers(users, seed, chance=0.0):
    """Everybody begins anywhere and does anything; rewards are 1 with this chance."""
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(0, 2, (users, 3)), rng.integers(0, 2, (users, 2))
    return Trajectories(states, actions, (rng.random((users, 2)) < chance).astype(float))


OUTSIDE = {
    "start": {"shape": Shape(2, 2, 2), "start": np.array([True, False])},
    "mask": {"shape": Shape(2, 2, 2, allowed=np.array([[True, True], [True, False]]))},
}


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_nothing_is_credited_to_whoever_begins_elsewhere_or_does_the_impossible(outside, most):
    """All rewards are 0, and half of the people are outside of what was declared."""
    trust = Central(4, 1e-5, mechanism="gaussian", participations=most)
    options = {"users": [i // most for i in range(4000)], **OUTSIDE[outside]}
    for seed in range(5):
        data = strangers(4000, seed)
        found = rehearsed(data, trust, seed, **options)
        assert found.behaviour_value < 0.03
        assert (found.lower_value, found.gain) == (0, 0)
        assert found.coverage.visits.sum(axis=1) == pytest.approx(
            [4000 / (2 if outside == "start" else 1)] * 2, rel=0.1
        )
        chance = {"sampler": "simulation", "seed": seed}
        other = discreet.evaluate_policy(data, np.zeros((2, 2), int), trust, **options, **chance)
        assert max(other.today.high, other.value.high) < 0.06


def test_a_fit_never_recommends_what_is_impossible():
    data = strangers(4000, 0)
    data = Trajectories(data.states, data.actions, data.actions.astype(float))
    anything = rehearsed(data, shape=Shape(2, 2, 2)).policy.actions
    assert (anything == 1).all()
    assert rehearsed(data, **OUTSIDE["mask"]).policy.actions.tolist() == [[1, DEFER]] * 2


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("outside", OUTSIDE)
def test_the_value_of_today_is_that_of_those_who_count(outside, most):
    """Whoever begins in state 1 earns 1, the others 1/4; the interval covers in 95% of runs."""
    trust = Central(2, 1e-5, mechanism="gaussian", participations=most)
    options = {"users": [i // most for i in range(1000)], **OUTSIDE[outside]}
    truth, missed = (0.5 if outside == "start" else 1.25), 0
    for seed in range(60):
        data = strangers(1000, seed, 0.25)
        rewards = np.where(data.states[:, :1] == 1, 1.0, data.rewards)
        data = Trajectories(data.states, data.actions, rewards)
        found = rehearsed(data, trust, seed, **options)
        missed += abs(found.behaviour_value - truth) > 1.96 * found.behaviour_error
    assert missed <= 8


def test_undeclared_actions_are_never_recommended_and_reported():
    declared = np.zeros(MDP.shape.visits[1:], bool)
    declared[:, 0] = True
    found = rehearsed(counted(1_000_000), support=declared)
    assert set(np.unique(found.policy.actions)) <= {DEFER, 0}
    assert found.coverage.other == pytest.approx(0.5, abs=0.01)
    assert not found.coverage.actions[..., 1].any()
    everything = rehearsed(counted(1_000_000))
    assert (everything.policy.actions == 1).any()


def test_a_state_without_declared_actions_always_defers():
    declared = np.ones(MDP.shape.visits[1:], bool)
    declared[0] = False
    found = rehearsed(counted(1_000_000), support=declared)
    assert found.policy.defers[:, 0].all()
    assert not found.policy.defers.all()


def test_slots_are_translated_back_to_actions():
    renamed = make("DoubleChain", relabel=3)
    data = counted(1_000_000, renamed)
    declared = np.zeros(renamed.shape.visits[1:], bool)
    best = solve(renamed).policy.actions
    declared[np.arange(len(declared)), best[3]] = True
    found = rehearsed(data, support=declared)
    acting = ~found.policy.defers
    step, state = np.nonzero(acting)
    assert acting.any()
    assert declared[state, found.policy.actions[step, state]].all()


def test_known_rewards_help_and_need_no_release_of_rewards():
    some, known = (
        np.mean([rehearsed(counted(10_000, seed=s), seed=s, **o).gain for s in range(4)])
        for o in ({}, {"rewards": MDP.full_rewards})
    )
    assert known > some


def test_known_rewards_with_undeclared_actions():
    declared = np.ones(MDP.shape.visits[1:], bool)
    declared[1, 0] = False
    found = rehearsed(counted(300_000), support=declared, rewards=MDP.full_rewards[0])
    today = evaluate(MDP, uniform_policy(MDP.shape))
    value = value_of(found, MDP, uniform_policy(MDP.shape))
    assert today < found.lower_value <= value


def test_stationary_steps_are_pooled():
    plain, pooled = (rehearsed(counted(5_000), stationary=s) for s in (False, True))
    assert plain.coverage.pooled is None
    assert pooled.coverage.pooled == 1
    assert pooled.coverage.actions.sum() > plain.coverage.actions.sum()


def test_a_single_step_will_do():
    mdp, behaviour = make("RandomMDP", horizon=1), np.full((1, 2, 2), 0.5)
    for stationary in (False, True):
        found = rehearsed(counted(100_000, mdp), start=mdp.start, stationary=stationary)
        assert value_of(found, mdp, behaviour) >= evaluate(mdp, behaviour)


def test_laplace_noise_will_do():
    found = rehearsed(counted(1_000_000), Central(1))
    assert found.guarantee.delta == 0
    assert found.gain > 0


def test_episodes_and_their_sums_are_one():
    raw = PEOPLE.counts(MDP.shape, np.random.default_rng(0))
    one = rehearsed(PEOPLE, NoPrivacy(), shape=MDP.shape)
    two = rehearsed(raw, NoPrivacy())
    assert np.array_equal(one.policy.actions, two.policy.actions)
    assert one.users == two.users == 400


def test_a_rehearsal_is_repeatable():
    one, two, other = (rehearsed(counted(30_000), seed=s) for s in (5, 5, 6))
    assert one.lower_value == two.lower_value
    assert np.array_equal(one.policy.actions, two.policy.actions)
    assert other.behaviour_value != one.behaviour_value


def test_short_episodes_are_padded_into_an_end_state():
    names = Vocabulary(states=["ill", "gone"], actions=["wait", "treat"], steps=[1, 2])
    table = {
        "user": ["a", "a", "b"],
        "step": [1, 2, 1],
        "state": ["ill", "ill", "ill"],
        "action": ["wait", "treat", "treat"],
        "reward": [0.0, 1.0, 1.0],
    }
    people, _ = read_table(table, names, padding=Padding("gone"))
    found = rehearsed(people, NoPrivacy(), vocabulary=names)
    assert found.coverage.visits.tolist() == [[2, 0], [1, 1]]
    assert found.behaviour_value == 1.0


def test_what_comes_out_is_secure_by_default():
    found = discreet.fit(PEOPLE, TRUST, shape=MDP.shape)
    assert not found.guarantee.simulated
    assert "SIMULATED" not in str(found)
    assert (found.guarantee.epsilon, found.guarantee.delta) in ((1, 1e-6), (1, 0))
    again = discreet.fit(PEOPLE, TRUST, shape=MDP.shape)
    # The visits, not the value: with so few people the estimated value is often cut off at 0.
    assert not np.array_equal(again.coverage.visits, found.coverage.visits)


def test_the_release_is_all_that_is_seen(monkeypatch):
    """Other people with the same release get the same fit, to the last bit."""
    kept = []

    def once(*arguments, **options):
        kept.append(usual(*arguments, **options))
        return kept[0]

    usual = releasing.release
    monkeypatch.setattr(releasing, "release", once)
    one = rehearsed(counted(30_000, seed=1))
    two = rehearsed(counted(30_000, seed=2), seed=9)
    assert len(kept) == 2
    assert str(one) == str(two)
    assert one.lower_value == two.lower_value
    assert np.array_equal(one.coverage.visits, two.coverage.visits)


SHAPE = Shape(states=2, actions=2, horizon=2)
TINY = Trajectories(np.zeros((3, 3), int), np.zeros((3, 2), int), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shape": None}, "Expected the size of the problem, got neither shape nor vocabulary"),
        ({"shape": (2, 2, 2)}, "Expected a Shape"),
        ({"shape": Shape(2, 2, 3)}, "Expected episodes of 3 steps, got 2"),
        ({"vocabulary": Vocabulary(states=3, actions=2, steps=2)}, "Expected one size"),
        ({"support": np.ones((2, 2, 2))}, "Expected support to be bool"),
        ({"support": np.ones((3, 2), bool)}, "Expected support to be bool"),
        ({"support": np.zeros((2, 2), bool)}, "Expected at least one True in support"),
        ({"start": np.zeros(2, bool)}, "Expected at least one True in start"),
        ({"start": [0, 1]}, "Expected start to be bool"),
        ({"rewards": np.zeros((3, 2))}, "Expected rewards of shape"),
        ({"rewards": np.full((2, 2), 1.5)}, "Expected rewards in"),
        ({"rewards": np.full((2, 2), np.nan)}, "Expected finite rewards"),
        ({"behaviour": np.full((3, 2), 0.5)}, "Expected behaviour of shape"),
        ({"behaviour": np.full((2, 2), 0.4)}, "add up to 1 in every state, got a state with 0.8"),
        ({"behaviour": np.full((2, 2), -1.0)}, "Expected behaviour in"),
        ({"stationary": "yes"}, "Expected stationary to be True or False"),
        ({"width": -1.0}, "Expected width >= 0, got width=-1.0"),
        ({"width": np.inf}, "Expected width to be a finite number"),
        ({"seed": 1, "sampler": "secure"}, "Secure noise cannot be seeded"),
        ({"sampler": "quick"}, "Expected sampler to be one of"),
        ({"trust": "central"}, "Expected a trust model"),
        ({"data": [[0, 1]]}, "Expected Trajectories or Counts, got list"),
        ({"data": TINY[:0]}, "Expected the episodes of at least one user"),
        (
            {"stationary": True, "support": np.arange(8).reshape(2, 2, 2) != 3},
            "Expected the same declared actions at every step",
        ),
        (
            {"data": Trajectories(np.full((1, 3), 2), np.zeros((1, 2), int), np.zeros((1, 2)))},
            "Expected states from 0 to 1, got 2 to 2",
        ),
        (
            {"data": Counts(1, np.ones((2, 2, 2, 2), int), np.zeros((2, 2, 2), int))},
            "a user was counted twice",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_input_is_one_sentence(options, said):
    given = {"data": TINY, "trust": TRUST, "shape": SHAPE, "sampler": "simulation", **options}
    with pytest.raises(InvalidInputError, match=said):
        discreet.fit(**given)


def test_local_trust_has_a_remedy():
    with pytest.raises(UnsupportedError, match="Logged episodes are in somebody's hands already"):
        discreet.fit(TINY, discreet.Local(1), shape=SHAPE)


def half_best(mdp):
    """Half of the time the best action, else any."""
    best = np.eye(mdp.shape.actions)[solve(mdp).policy.actions]
    return 0.5 / mdp.shape.actions + 0.5 * best


def two_actions(mdp):
    """In every state the best action and one other, 80 to 20 or, in three of ten, 20 to 80."""
    best, actions = solve(mdp).policy.actions, mdp.shape.actions
    rng = np.random.default_rng(123)
    other = (best + rng.integers(1, actions, best.shape)) % actions
    share = np.where(rng.random(best.shape) < 0.7, 0.8, 0.2)[..., None]
    return share * np.eye(actions)[best] + (1 - share) * np.eye(actions)[other]


def gained(mdp, support, users, seed, **options):
    """The share of what there was to gain, and whether the claim holds."""
    found = rehearsed(counted(users, mdp, seed, support), seed=seed, start=mdp.start, **options)
    today, best = evaluate(mdp, support), solve(mdp).value
    value = value_of(found, mdp, support)
    return (value - today) / (best - today), found.lower_value <= value + 1e-9


def test_a_known_behaviour_helps_where_steps_are_pooled():
    mdp = make("RandomMDP", states=5, actions=3, horizon=6, concentration=0.5, seed=1)
    support = half_best(mdp)
    gains = [
        np.mean([gained(mdp, support, 1000, s, stationary=True, **how)[0] for s in range(10)])
        for how in ({}, {"behaviour": support})
    ]
    assert gains[1] > gains[0] + 0.05


def test_a_hundred_thousand_users_of_treatment_gain_and_none_is_worse_off():
    """Three behaviours, 20 runs each; fit's page has the other environments and sizes."""
    mdp = make("Treatment")
    behaviours = (np.full(mdp.shape.visits, 1 / 3), half_best(mdp), two_actions(mdp))
    runs = [gained(mdp, support, 10**5, seed) for support in behaviours for seed in range(20)]
    gains, claims = np.array(runs, float).T
    assert gains.mean() > 0.69  # what is asked for at this size
    assert gains.min() > 0
    assert claims.mean() >= 0.95


class TestLedger:
    """Releases about the same people add up, where their names are known."""

    NAMES = tuple(f"user-{i}" for i in range(len(PEOPLE)))

    def fit(self, path, trust=TRUST, data=PEOPLE, **options):
        given = {"users": self.NAMES, "ledger": path, "shape": MDP.shape} | options
        return discreet.fit(data, trust, **given)

    def test_every_release_is_charged_with_what_it_guarantees(self, tmp_path):
        path = tmp_path / "people.ledger"
        first, second = self.fit(path), self.fit(path, Central(0.5, 1e-6))
        assert first.account.before == Cost.of(0)
        assert second.account.before == Cost.of(first.guarantee.epsilon, first.guarantee.delta)
        assert second.account.spent.epsilon == Cost.of(1.5).epsilon
        assert "spent before" in str(second)
        assert second.to_dict()["ledger"]["spent"]["epsilon"] == 1.5

    def test_counts_are_charged_too(self, tmp_path):
        counts = counted(400)
        found = self.fit(Ledger(tmp_path / "l", budget=Budget(1, 1e-6)), data=counts)
        assert found.account.left.epsilon == 0
        with pytest.raises(BudgetError):
            self.fit(tmp_path / "l", Central(0.1, 1e-6), counts)

    def test_the_charge_is_written_before_anything_is_drawn(self, tmp_path, monkeypatch):
        """A crash leaves a charge without a release, never a release without a charge."""
        path = tmp_path / "people.ledger"

        def crash(*_, **__):
            assert path.exists()
            raise MemoryError

        monkeypatch.setattr(releasing, "release", crash)
        with pytest.raises(MemoryError):
            self.fit(path)
        monkeypatch.undo()
        assert self.fit(path).account.before.epsilon == 1

    def test_a_rehearsal_is_not_charged(self, tmp_path):
        found = self.fit(tmp_path / "l", sampler="simulation", seed=0)
        assert found.account is None
        assert found.to_dict()["ledger"] is None
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"users": None}, "got ledger alone; give users"),
            ({"users": NAMES[1:]}, "a name for each of the 400 episodes, got 399"),
            ({"users": "people"}, "a list of users' names"),
            ({"users": ("user\0", *NAMES[1:])}, "without control characters"),
            ({"width": -1}, "width >= 0"),
        ],
    )
    def test_what_is_refused_is_not_charged(self, tmp_path, options, sentence):
        with pytest.raises(InvalidInputError, match=sentence):
            self.fit(tmp_path / "l", **options)
        assert list(tmp_path.iterdir()) == []

    def test_no_budget_covers_exact_sums(self, tmp_path):
        with pytest.raises(UnsupportedError, match="No budget covers exact sums"):
            self.fit(tmp_path / "l", NoPrivacy())
