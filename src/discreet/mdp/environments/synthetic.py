"""Test problems of the literature: chains, grids, random ones, and one as hard as it gets.

``horizon`` is the steps per episode, ``relabel`` a seed to rename the actions at random, per state
where all steps are alike, else per step and state.
"""

import math

import numpy as np

from discreet import _validate
from discreet.errors import InvalidInputError
from discreet.mdp.tabular import TabularMDP, relabel_actions


def RiverSwim(*, states: int = 4, horizon: int = 6, relabel: int | None = None) -> TabularMDP:
    """A chain against the current: far right pays 1, staying at the left end pays 0.005.

    Action 0 (left) always succeeds. Action 1 (right) moves up with probability 0.35, stays with 0.6
    and is pushed back with 0.05; at the left end it moves up with 0.6, at the right end it stays
    with 0.6. All episodes start at the left end. After Strehl and Littman (2008); the defaults
    (four states, horizon six) are the setting of Bai et al., "Secure Reinforcement Learning via
    Shuffle Privacy Model".

    >>> RiverSwim().rewards[0].tolist()
    [[0.005, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    _validate.count(2, states=states)
    left, right = 0, 1
    transitions = np.zeros((states, 2, states))
    for s in range(states):
        transitions[s, left, max(s - 1, 0)] = 1
    for s in range(1, states - 1):
        transitions[s, right, s - 1 : s + 2] = 0.05, 0.6, 0.35
    transitions[0, right, :2] = 0.4, 0.6
    transitions[-1, right, -2:] = 0.4, 0.6
    rewards = np.zeros((states, 2))
    rewards[0, left] = 0.005
    rewards[-1, right] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="RiverSwim")
    return relabel_actions(mdp, relabel)


def DoubleChain(
    *,
    length: int = 3,
    horizon: int = 8,
    success: float = 0.9,
    consolation: float = 0.6,
    relabel: int | None = None,
) -> TabularMDP:
    """Two chains from one start; the end of the second pays 1, that of the first ``consolation``.

    Each chain has ``length`` states. At the start, action 0 enters the first chain and action 1 the
    second. Inside a chain action 0 advances with probability ``success`` (else it stays) and action
    1 goes back to the start. The last state of a chain pays for action 0 and keeps it there. A
    learner that settles early sits at the end of the wrong chain. In the spirit of the double loop
    of Dearden, Friedman and Russell (1998), "Bayesian Q-learning".
    """
    _validate.count(length=length)
    _validate.probability(success=success, consolation=consolation)
    advance, back = 0, 1
    states = 2 * length + 1
    transitions = np.zeros((states, 2, states))
    rewards = np.zeros((states, 2))
    for entry, pay in ((1, consolation), (1 + length, 1.0)):
        end = entry + length - 1
        for s in range(entry, end):
            transitions[s, advance, [s, s + 1]] = 1 - success, success
        transitions[end, advance, end] = 1
        transitions[entry : end + 1, back, 0] = 1
        rewards[end, advance] = pay
    transitions[0, 0, 1] = transitions[0, 1, 1 + length] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="DoubleChain")
    return relabel_actions(mdp, relabel)


_OPENS = (1.0, 0.15, 0.10, 0.05, 0.03, 0.01)
_PAYS = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)


def SixArms(*, horizon: int = 20, relabel: int | None = None) -> TabularMDP:
    """Six doors: the harder one opens, the more its room pays.

    In state 0 action i opens door i with probability 1, 0.15, 0.1, 0.05, 0.03, 0.01 and leads to
    state i + 1. In that room action 5 - i pays (50, 133, 300, 800, 1660, 6000, divided by 6000)
    and stays, every other action leaves for state 0 unpaid. The probabilities and payments are
    those of Strehl and Littman (2008), "An analysis of model-based interval estimation for Markov
    decision processes"; one paying action per room is our simplification.
    """
    transitions = np.zeros((7, 6, 7))
    rewards = np.zeros((7, 6))
    for door, (opens, pays) in enumerate(zip(_OPENS, _PAYS, strict=True)):
        room, stay = door + 1, 5 - door
        transitions[0, door, [0, room]] = 1 - opens, opens
        transitions[room, :, 0] = 1
        transitions[room, stay] = np.eye(7)[room]
        rewards[room, stay] = pays / max(_PAYS)
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="SixArms")
    return relabel_actions(mdp, relabel)


def RandomMDP(
    *,
    states: int = 2,
    actions: int = 2,
    horizon: int = 2,
    concentration: float = 0.1,
    stationary: bool = True,
    seed: int = 4,
    relabel: int | None = None,
) -> TabularMDP:
    """Random transitions, rewards 0 or 1; a small concentration makes moves nearly certain.

    Each transition row is a symmetric Dirichlet, one draw for all steps if ``stationary``; each
    pair (s, a) always pays 1 with probability one half or else always 0; episodes begin in state 0.
    The defaults are the setting of Garcelon, Perchet, Pike-Burke and Pirotta (2021), "Local
    Differential Privacy for Regret Minimization in Reinforcement Learning"; with the default seed
    no fixed action is best.
    """
    _validate.count(states=states, actions=actions, horizon=horizon)
    _validate.count(0, seed=seed)
    _validate.positive(concentration=concentration)
    rng = np.random.default_rng(seed)
    steps = 1 if stationary else horizon
    transitions = rng.dirichlet(np.full(states, concentration), size=(steps, states, actions))
    rewards = rng.random((steps, states, actions)) <= 0.5
    mdp = TabularMDP(
        transitions=transitions[0] if stationary else transitions,
        rewards=rewards[0] if stationary else rewards,
        horizon=horizon,
        reward_kind="deterministic",
        name="RandomMDP",
    )
    return relabel_actions(mdp, relabel)


_MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Up, right, down, left; the neighbours of a move in this list are its perpendiculars."""


def GridWorld(
    *,
    layout: str = "S...|.#..|..O.|...G",
    slip: float = 0.2,
    horizon: int = 12,
    relabel: int | None = None,
) -> TabularMDP:
    """Walk from S to G on slippery ground; G pays 1 per step until the end, O is a hole.

    A layout is rows separated by ``|``: ``.`` ground, ``#`` wall, ``O`` hole, ``S`` start (one),
    ``G`` goal. Actions are up, right, down and left. With probability ``slip`` the walker goes to
    one of the two perpendicular sides instead (half each). Walls and the border stop a move. Holes
    and the goal are never left.
    """
    _validate.probability(slip=slip)
    rows = _rows(layout)
    cells = [(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"]
    number = {cell: i for i, cell in enumerate(cells)}
    transitions = np.zeros((len(cells), 4, len(cells)))
    rewards = np.zeros((len(cells), 4))
    for (r, c), s in number.items():
        if rows[r][c] in "OG":
            transitions[s, :, s] = 1
            rewards[s] = rows[r][c] == "G"
            continue
        for a in range(4):
            for turn, probability in ((0, 1 - slip), (1, slip / 2), (-1, slip / 2)):
                step = _MOVES[(a + turn) % 4]
                transitions[s, a, number.get((r + step[0], c + step[1]), s)] += probability
    start = next(number[r, c] for r, c in cells if rows[r][c] == "S")
    mdp = TabularMDP(
        transitions=transitions, rewards=rewards, initial=start, horizon=horizon, name="GridWorld"
    )
    return relabel_actions(mdp, relabel)


def _rows(layout: str) -> list[str]:
    rows = str(layout).split("|")
    marks = "".join(rows)
    if len({len(row) for row in rows}) != 1 or set(marks) - set(".#OSG"):
        raise InvalidInputError(
            f"Expected a layout of equally long rows of . # O S G separated by |, got {layout!r}."
        )
    if marks.count("S") != 1 or "G" not in marks:
        raise InvalidInputError(f"Expected one start S and a goal G in the layout, got {layout!r}.")
    return rows


def LowerBound(
    *,
    depth: int = 2,
    actions: int = 3,
    horizon: int = 8,
    advantage: float = 0.2,
    episodes: int | None = None,
    epsilon: float | None = None,
    trust: str = "local",
    relabel: int | None = None,
) -> TabularMDP:
    """A tree to leaves with coin-flip arms, one of which is a little better: as hard as it gets.

    Actions in the tree choose the child. Every arm of a leaf leads to a good state (reward 1 until
    the end) or a bad one (reward 0) with probability one half each, except one arm of one leaf,
    which leads to the good state with probability ``1/2 + advantage``. Finding it takes of the
    order of S * A / advantage^2 episodes, and 1 / (exp(epsilon) - 1)^2 times as many under local
    privacy: the kind of instance behind Theorem 2 of Garcelon, Perchet, Pike-Burke and Pirotta
    (2021) and behind the non-private bound H sqrt(S A K). The tree is complete, so that all leaves
    are equally far away.

    Args:
        depth: levels of the tree; (A^depth - 1) / (A - 1) + 2 states in all.
        actions: A, children per node and arms per leaf.
        horizon: steps per episode; at least depth + 1, the bound needs about twice the depth.
        advantage: how much likelier the good state is after the best arm, at most 1/2.
        episodes: K; the advantage is then the hardest one for K users (`hardest_advantage`).
        epsilon: of the privacy that learners keep, beside ``episodes``; None is without privacy.
        trust: who keeps it, ``"local"`` or ``"central"``.
        relabel: a seed to rename the actions at random in each state, which hides the best arm.
    """
    _validate.count(depth=depth)
    _validate.count(2, actions=actions)
    _validate.count(depth + 1, horizon=horizon)
    if episodes is not None:
        advantage = hardest_advantage(actions**depth, episodes, epsilon, trust)
    elif epsilon is not None:
        raise InvalidInputError(
            f"Expected episodes beside epsilon={epsilon!r}: the hardest advantage depends on both."
        )
    _validate.probability(advantage=advantage)
    if advantage > 0.5:
        raise InvalidInputError(f"Expected advantage <= 1/2, got advantage={advantage}.")
    nodes = (actions**depth - 1) // (actions - 1)
    inner = (actions ** (depth - 1) - 1) // (actions - 1)
    good, bad = nodes, nodes + 1
    transitions = np.zeros((nodes + 2, actions, nodes + 2))
    for node in range(inner):
        for a in range(actions):
            transitions[node, a, actions * node + a + 1] = 1
    transitions[inner:nodes, :, [good, bad]] = 0.5
    transitions[inner, actions - 1, [good, bad]] = 0.5 + advantage, 0.5 - advantage
    transitions[[good, bad], :, [good, bad]] = 1
    rewards = np.zeros((nodes + 2, actions))
    rewards[good] = 1
    mdp = TabularMDP(transitions=transitions, rewards=rewards, horizon=horizon, name="LowerBound")
    return relabel_actions(mdp, relabel)


def hardest_advantage(
    arms: int, episodes: int, epsilon: float | None = None, trust: str = "local"
) -> float:
    """The advantage of the best arm at which K users cannot find it, and lose most.

    **Derivation.** Let the best of n arms be drawn uniformly, and compare with n equal arms, where
    arm j is played N_j times, K/n on average over j. If one play tells the learner at most
    tau(Delta) about which of the two worlds it is in, KL <= tau·E[N_j], then by Pinsker the best
    arm is played at most K/n + K·sqrt(K·tau/(2n)) times on average over j: K/n + K/4 with the
    Delta (at most 1/4) at which tau = n/(8K).

    *Without privacy* tau = -log(1 - 4·Delta²)/2 <= (8/3)·Delta².

    *epsilon-LDP*: also tau <= min(4, e^(2·epsilon))·(e^epsilon - 1)²·Delta² (Duchi, Jordan and
    Wainwright 2013, Theorem 1: the total variation of the two trajectories is at most Delta).

    *Central epsilon*: the policies a are epsilon-DP in every user's outcome r, which is how joint
    privacy is kept here (billboard lemma). Turn a fair outcome r of an arm-j player into r', good
    with probability 1/2 + Delta: a bad one becomes good with probability 2·Delta. Given r', a good
    one was bad with probability at most 2·Delta, and P(a|r) <= e^(epsilon·d)·P(a|r') if d outcomes
    differ. So P_0(a) <= (1 + 2·Delta·(e^epsilon - 1))^(N_j(a))·P_j(a), and
    tau <= 2·(e^epsilon - 1)·Delta: below Delta² only where K < n/epsilon² or so.

    >>> round(hardest_advantage(9, 100_000), 5), round(hardest_advantage(9, 100_000, 0.1), 5)
    (0.00205, 0.02886)
    >>> round(hardest_advantage(9, 10_000, 0.001, "central"), 5)
    0.05622
    """
    _validate.count(arms=arms, episodes=episodes)
    _validate.choice(("local", "central"), trust=trust)
    told, share = 8 / 3, arms / (8 * episodes)
    if epsilon is None:
        return min(0.25, math.sqrt(share / told))
    _validate.positive(epsilon=epsilon)
    small = min(float(epsilon), 2.0)  # beyond, reports tell as much as outcomes
    if trust == "central":
        return min(0.25, max(math.sqrt(share / told), share / (2 * math.expm1(small))))
    told = min(told, min(4.0, math.exp(2 * small)) * math.expm1(small) ** 2)
    return min(0.25, math.sqrt(share / told))


def least_regret(
    arms: int, episodes: int, steps: int, epsilon: float | None = None, trust: str = "local"
) -> float:
    """What every (epsilon-private) learner loses on average over where the best arm is.

    K·(3/4 - 1/n) plays miss it, and each loses the advantage in each of the ``steps`` that follow:
    of the order of H·sqrt(S·A·K)/min(e^epsilon - 1, 1) under LDP (Theorem 2 of paper 002), of
    H·sqrt(S·A·K) + S·A·H/epsilon under central privacy (Vietri et al. 2020).

    >>> round(least_regret(9, 100_000, 6, 0.1))
    11062
    >>> round(least_regret(9, 10_000, 6, 0.001, "central")), round(least_regret(9, 10_000, 6))
    (2155, 249)
    """
    advantage = hardest_advantage(arms, episodes, epsilon, trust)
    return episodes * (0.75 - 1 / arms) * advantage * steps
