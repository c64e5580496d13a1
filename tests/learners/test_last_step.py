"""Every batch learner learns what the last step pays, whoever is trusted."""

import numpy as np
import pytest

import discreet
from discreet.errors import InvalidInputError
from discreet.learners.elimination.explorers import CountPool
from discreet.learners.learn import expected_regret, make_batch_learner, public_facts
from discreet.learners.registry import get_learner, learner_names
from discreet.mdp import uniform_policy
from discreet.mdp.planning import RegretMeter
from discreet.mdp.simulation import sample_counts
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.guarantee import NO_GUARANTEE
from discreet.privacy.mechanisms.additive import AdditiveBatch
from discreet.privacy.statistics import PrivateCounts

TRUSTS = {
    "none": discreet.NoPrivacy(),
    "gaussian": discreet.Central(1, 1e-6),
    "laplace": discreet.Central(1),
    "histogram": discreet.Shuffle(0.5, 1e-6, mechanism="histogram"),
    "bits": discreet.Shuffle(0.5, 1e-6, mechanism="bits"),
    "local": discreet.Local(4),
}
BATCH_LEARNERS = [n for n in learner_names() if get_learner(n).schedule == "batch"]


def paying_at_the_end(horizon, action):
    """Two states, two actions; only one action in each state of the last step pays."""
    transitions = np.zeros((horizon, 2, 2, 2))
    transitions[..., 0] = [0.8, 0.3]
    transitions[..., 1] = 1 - transitions[..., 0]
    rewards = np.zeros((horizon, 2, 2))
    rewards[-1, 0, action], rewards[-1, 1, 1 - action] = 0.9, 0.4
    return TabularMDP(transitions=transitions, rewards=rewards, initial=np.array([0.5, 0.5]))


@pytest.mark.parametrize("trust", TRUSTS)
@pytest.mark.parametrize("learner", BATCH_LEARNERS)
@pytest.mark.parametrize("horizon", [1, 3])
def test_the_last_step_is_learnt(learner, trust, horizon):
    """With rewards there alone: the last policy loses a tenth of what a uniform one does."""
    for action in (0, 1):
        mdp = paying_at_the_end(horizon, action)
        result = discreet.learn(mdp, learner=learner, trust=TRUSTS[trust], episodes=100_000, seed=3)
        meter = RegretMeter(mdp)
        uniform = meter.regret(uniform_policy(mdp.shape))
        assert meter.regret(result.policy) < 0.1 * uniform


def test_stationary_problems_are_pooled_with_their_last_transitions():
    mdp = paying_at_the_end(3, 0)
    make = make_batch_learner
    for stationary in (False, True):
        problem = public_facts(mdp, 1000, stationary=stationary)
        spec, rng = get_learner("flow-ucb"), np.random.default_rng(0)
        learner = make(spec, problem, TRUSTS["gaussian"], rng, {})
        assert learner.mechanism.last_transitions == stationary
        assert learner.mechanism.centred


def release_with_looks(mdp, policy, users, deviation, rng):
    """A batch as groups release it: no last transitions, n1 and n0, everybody somewhere."""
    support = policy.support(mdp.shape, mdp.initial > 0)
    counts = sample_counts(mdp, policy, users, rng).at(support)
    rows, steps = len(counts.row_rewards), np.nonzero(support)[0]

    def noise(*size):
        return rng.normal(scale=deviation, size=size)

    moved = (steps < mdp.horizon - 1)[:, None]
    ones = counts.row_rewards + noise(rows)
    zeros = counts.row_visits - counts.row_rewards + noise(rows)
    variance = deviation**2
    return PrivateCounts(
        users,
        np.where(moved, counts.row_transitions + noise(rows, mdp.shape.states), 0.0),
        ones + zeros,
        (ones - zeros) / 2,
        {"transitions": variance, "visits": 2 * variance, "rewards": variance / 2},
        support,
        NO_GUARANTEE,
        centred=True,
        last_transitions=False,
        dropped_out={"transitions": noise(mdp.horizon - 1), "rewards": noise(mdp.horizon)},
    )


class Looking(AdditiveBatch):
    """What a learner reads off a plan whose releases look twice at the visits."""

    def noise_variance(self, users):
        return {"transitions": 400.0, "visits": 800.0, "rewards": 200.0}


@pytest.mark.parametrize(
    ("learner", "settings"),
    [("flow-ucb", {}), ("sdp-pe", {}), ("sdp-pe", {"structure": "paper"})],
)
@pytest.mark.parametrize("horizon", [1, 3])
def test_two_looks_at_the_visits_are_enough(learner, settings, horizon):
    mdp, rng = paying_at_the_end(horizon, 1), np.random.default_rng(5)
    exact = discreet.NoPrivacy().calibrate(
        mdp.shape, statistics=("transitions", "rewards"), last_transitions=False
    )
    mechanism = Looking(**{**vars(exact), "centred": True, "last_transitions": False})
    problem = public_facts(mdp, 100_000)
    made = get_learner(learner).make(problem, mechanism, np.random.default_rng(1), **settings)
    told = 0
    while told < problem.episodes:
        batch = made.ask()
        made.tell(release_with_looks(mdp, batch.policy, batch.users, 20.0, rng))
        told += batch.users
        made.restore(made.state())
    meter = RegretMeter(mdp)
    lost = expected_regret(meter, batch.policy)
    assert lost < 0.1 * meter.regret(uniform_policy(mdp.shape))


def test_mixtures_need_some_look_at_the_last_step():
    mdp = paying_at_the_end(3, 1)
    release = release_with_looks(mdp, uniform_policy(mdp.shape), 100, 1.0, np.random.default_rng(0))
    assert CountPool.of_release(release).visits()[-1].sum() == pytest.approx(100, abs=15)
    blind = PrivateCounts(
        100,
        release.row_transitions,
        None,
        release.row_rewards,
        release.noise_variance,
        release.support,
        NO_GUARANTEE,
        last_transitions=False,
    )
    with pytest.raises(InvalidInputError, match="last_transitions=True"):
        CountPool.of_release(blind)
