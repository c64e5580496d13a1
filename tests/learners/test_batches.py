"""At most N recruitments, and a declared stationarity that counts contradict."""

import numpy as np
import pytest

import discreet
from discreet.errors import DiscreetError, InvalidInputError, UnsupportedError
from discreet.mdp import RandomMDP, make

TRUST = discreet.Shuffle(1, 1e-6)
RIVER = make("RiverSwim", states=3, horizon=4)


@pytest.mark.parametrize("learner", ["flow-ucb", "explore-then-commit", "trial", "pe", "sdp-pe"])
@pytest.mark.parametrize("batches", [3, 4, 5, 10])
@pytest.mark.parametrize("episodes", [300, 20_000])
def test_no_more_recruitments_than_asked_for(learner, batches, episodes):
    trust = None if learner == "pe" else TRUST
    result = discreet.learn(
        RIVER, learner=learner, trust=trust, episodes=episodes, seed=1, batches=batches
    )
    assert len(result.extras["batches"]) <= batches
    assert sum(result.extras["batches"]) == episodes
    if learner != "trial":  # which says how many stages it has
        assert result.settings["batches"] == batches


def test_stages_that_fit_stay_as_they_are_and_fewer_ones_grow_faster():
    def sizes(**settings):
        how = {"learner": "sdp-pe", "trust": TRUST, "episodes": 20_000}
        return discreet.learn(RIVER, **how, **settings).extras["batches"]

    assert sizes(batches=40) == sizes()
    few = sizes(batches=5)  # the first stage has 20,000^0.6 = 381 users, a third of them crudely
    assert few[:2] == [127, 254] and len(few) == 5 and few[-1] > few[-2] > few[-3]


@pytest.mark.parametrize(
    ("learner", "batches", "settings", "said"),
    [
        ("flow-ucb", 1, {}, "batches >= 2, got batches=1"),
        ("explore-then-commit", 1, {}, "batches >= 2, got batches=1"),
        ("sdp-pe", 2, {}, "batches >= 3, got batches=2"),
        ("sdp-pe", 5, {"structure": "paper"}, "leave structure='paper' out"),
    ],
)
def test_a_batch_learner_that_cannot_obey_says_why(learner, batches, settings, said):
    with pytest.raises(InvalidInputError, match=said):
        discreet.learn(
            RIVER, learner=learner, trust=TRUST, episodes=5000, batches=batches, **settings
        )


@pytest.mark.parametrize("learner", ["dp-ucbvi", "private-uc-o-reps"])
def test_a_learner_without_batches_says_so(learner):
    with pytest.raises(DiscreetError, match="cannot keep to batches=5; leave batches out") as said:
        discreet.learn(RIVER, learner=learner, episodes=100, batches=5)
    assert isinstance(said.value, UnsupportedError)


@pytest.mark.parametrize("learner", ["flow-ucb", "explore-then-commit", "trial"])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("stationary", [True, False])
def test_a_declared_stationarity_that_counts_contradict_is_said(learner, declared, stationary):
    mdp = RandomMDP(states=4, actions=2, horizon=5, seed=3, stationary=stationary)
    trust = discreet.Central(1, 1e-6)
    result = discreet.learn(
        mdp, learner=learner, trust=trust, episodes=200_000, seed=4, stationary=declared
    )
    assert len(result.notes) == (declared and not stationary)
    for note in result.notes:
        assert "stationary=True was declared, and the counts contradict it" in note


def test_who_explores_twice_as_long_commits_as_before():
    one, two = (
        discreet.learn(
            RIVER, learner="explore-then-commit", trust=TRUST, episodes=9000, **settings
        ).extras["batches"]
        for settings in ({"rounds": 2}, {"batches": 3})
    )
    np.testing.assert_array_equal(one, two)
