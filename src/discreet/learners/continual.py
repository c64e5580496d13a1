"""The continual schedule: one episode, one release, one new policy; shared by all its learners.

A continual learner is a compiled planner that reads like the paper, fed with the coefficients of
each release. `privacy.simulation.kernels.run_block` asks it for a policy before every simulated
user, `planned` wherever somebody else asks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types

from discreet._jit import BORROWED, inlined
from discreet._seeds import RunSeeds
from discreet._types import Floats, Ints
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import FORBIDDEN, ContinualLearner, PublicFacts
from discreet.learners.result import RegretRecorder, Result, ReturnCurve, noise_deviations
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import (
    DeterministicPolicy,
    Policy,
    StochasticPolicy,
    uniform_policy,
)
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.simulation.kernels import (
    FLOATS_4,
    GENERATOR,
    INTEGERS_2,
    PLANNER,
    NextPolicy,
    Scratch,
    run_block,
)
from discreet.privacy.simulation.users import SimulatedUsers, World, no_counts
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Calibration, Local, TrustModel

_COEFFICIENTS = 1 << 12
"""Episodes whose coefficients are computed at once."""
TIE = 1e-12
"""Values closer than this are equal up to rounding: integer noise makes such ties common."""
ROWS = 6
"""Of a model, beside the S rows of probabilities."""


ContinualKind = TypeVar("ContinualKind", bound=ContinualLearner)


def make_learner(
    kind: type[ContinualKind],
    mdp: World,
    trust: TrustModel,
    episodes: int,
    rng: np.random.Generator,
    settings: Mapping[str, object],
) -> ContinualKind:
    """A learner with its release calibrated."""
    chosen = kind.settings_type.choose(settings, learner=kind.name)
    stationary = mdp.stationary if chosen.stationary is None else chosen.stationary
    if stationary and not mdp.stationary:
        raise UnsupportedError(
            f"stationary=True needs a stationary MDP, and {mdp!r} is not; drop the setting "
            f"(or relabel actions per state, not per step and state)."
        )
    if kind.paper and isinstance(trust, Local) and trust.calibration == "paper":
        trust = replace(trust, calibration=cast(Calibration, f"paper-{kind.paper}"))
    mechanism = trust.calibrate_stream(
        mdp.shape,
        episodes=episodes,
        stationary=stationary,
        last_transitions=chosen.last_transitions,
    )
    problem = PublicFacts(
        shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary
    )
    return kind(problem, mechanism, rng, replace(chosen, stationary=stationary))


def run_continual(
    kind: type[ContinualLearner],
    mdp: World,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    **settings: object,
) -> Result:
    """Simulate ``episodes`` users under a continual learner.

    Compiled if it has a planner and the environment a model.
    """
    learner = make_learner(kind, mdp, trust, episodes, seeds.generator("policy"), settings)
    recorder, earned = RegretRecorder(episodes), list[float]()
    if not isinstance(mdp, TabularMDP):
        users, counts = SimulatedUsers(mdp, learner.mechanism, seeds), no_counts(learner.mechanism)
        for _ in range(episodes):
            policy = planned(learner, counts)
            counts = users.add(policy, learner.rng)
        earned = users.returns
    elif learner.planner() is None:
        for support, regret in walk(learner, mdp, seeds):
            recorder.add(1, regret)
            policy = support
    else:
        compiled = CompiledRun(mdp, learner, seeds)
        for regrets in compiled.blocks():
            recorder.add_each(regrets)
        policy = compiled.policy()
    mechanism = learner.mechanism
    return Result(
        learner=learner.name,
        regret=recorder.curve(),
        guarantee=mechanism.guarantee,
        policy=policy,
        episodes=mechanism.episodes,
        seed=seeds.seed,
        settings=learner.settings.to_dict(),
        mechanism=mechanism.name,
        noise=noise_deviations(mechanism.noise_variance(mechanism.episodes)),
        returns=ReturnCurve.of(np.array(earned)) if earned else None,
    )


class CompiledRun:
    """One run through the compiled loop: simulated users and the learner's memory.

    Blocks go round here and not in `privacy.simulation`, which knows no learner: coefficients,
    memory, planner and regret are the learner's. Users, raw counts and noise pass from
    `SimulatedUsers` to `run_block`, both of privacy, unopened; planners get public counters alone.
    """

    def __init__(self, mdp: TabularMDP, learner: ContinualLearner, seeds: RunSeeds) -> None:
        self.learner = learner
        self.stream = SimulatedUsers(mdp, learner.mechanism, seeds)
        self._optimum = RegretMeter(mdp).optimal.value
        self._policy = room(learner)[1]

    def blocks(self) -> Iterator[Floats]:
        """Run all episodes; yields the regrets of one block after the other."""
        learner = self.learner
        scratch, policy = room(learner)
        self._policy = policy
        planner, start, rows = Pointer(compiled_planner(learner)), 0, np.zeros((0, 0))
        for first, count, users in self.stream.blocks():
            if first + count > start + len(
                rows
            ):  # for many episodes at a time: blocks may be short
                last = min(learner.mechanism.episodes, first + max(count, _COEFFICIENTS))
                start, rows = first, learner.coefficients(np.arange(first, last))
            mine, values = rows[first - start : first - start + count], np.zeros(count)
            stochastic, rng = learner.stochastic, learner.rng
            run_block(planner, mine, users, scratch, policy, stochastic, values, rng)
            del users  # before the next block is drawn, which then stands in the same memory
            yield np.maximum(0.0, self._optimum - values)

    def policy(self) -> Policy:
        """The policy of the last episode."""
        return left_behind(self.learner, self._policy)


def compiled_planner(learner: ContinualLearner) -> Callable[..., None]:
    """Its planner, or an error that says what a learner must have."""
    compiled = learner.planner()
    if compiled is None:
        raise UnsupportedError(
            f"Learner {learner.name!r} has neither a planner nor a method next_policy; write one."
        )
    return compiled


def room(learner: ContinualLearner) -> tuple[Scratch, NextPolicy]:
    """What its planner computes in, and where it leaves the next policy."""
    shape, memory = learner.problem.shape, learner.memory()
    if memory.shape[1:] != shape.visits:  # compiled code does not look where its arrays end
        raise InvalidInputError(
            f"A planner needs a memory [M, H, S, A] with (H, S, A) = {shape.visits}, got one of "
            f"shape {memory.shape}: memory() of its learner has to make it."
        )
    groups = 1 if learner.mechanism.stationary else shape.horizon
    model = np.zeros((shape.states + ROWS, groups, shape.states * shape.actions))
    actions = np.zeros(shape.visits[:2], np.int64)
    played = uniform_policy(shape).probabilities.copy()
    policy = NextPolicy(actions, played, np.full_like(actions, -1), np.array([np.nan]))
    return Scratch(memory, model, np.zeros((shape.horizon + 1, shape.states))), policy


def left_behind(learner: ContinualLearner, policy: NextPolicy) -> Policy:
    """What a planner chose."""
    if learner.stochastic:
        return StochasticPolicy(policy.probabilities)
    return DeterministicPolicy(policy.actions)


def planned(learner: ContinualLearner, counts: PrivateCounts) -> Policy:
    """The policy for the next user, from the counts of all users before."""
    own = learner.next_policy(counts)
    if own is not None:
        return own
    if counts.transitions is None or counts.visits is None or counts.rewards is None:
        raise UnsupportedError(
            f"Continual learners need the statistics {', '.join(STATISTICS)}; one is missing."
        )
    learner.room = learner.room or room(learner)
    scratch, policy = learner.room
    row = learner.coefficients(np.array([counts.users]))[0]
    released = (counts.transitions, counts.visits, counts.rewards)
    compiled_planner(learner)(row, *released, *scratch, *policy[:2], learner.rng)
    return left_behind(learner, policy)


def walk(
    learner: ContinualLearner, mdp: TabularMDP, seeds: RunSeeds
) -> Iterator[tuple[Policy, float]]:
    """Plan, play, release; yields each policy and its regret."""
    stream, meter = SimulatedUsers(mdp, learner.mechanism, seeds), RegretMeter(mdp)
    counts = no_counts(learner.mechanism)
    for _ in range(learner.mechanism.episodes):
        policy = planned(learner, counts)
        yield policy, meter.regret(policy)
        counts = stream.add(policy, learner.rng)


def planner(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a planner: from the released counts to the next policy.

    Its arguments, all changed in place where they are outputs or scratch:

    - ``row``: the learner's coefficients for this release (bonus factors, error terms);
    - ``transitions[G,S,A,S]``, ``visits[G,S,A]``, ``rewards[G,S,A]``: the cumulative private
      counts, G = H, or 1 for stationary counts;
    - ``memory[M,H,S,A]``: what the learner keeps between episodes, Q first; it stays `FORBIDDEN`
      where it is (an action that is not possible);
    - ``model[S+ROWS,G,S·A]``, ``values[H+1,S]``: room to compute in. Pairs s·A + a come last: what
      is done for all of them alike vectorises (and rows first: they do not overlap);
    - ``actions[H,S]``, ``probabilities[H,S,A]``: the next policy, one of the two;
    - ``rng``: ties and draws of the learner.

    It makes no arrays (see `_jit.BORROWED`): room is what ``model`` and ``values`` are for.
    """
    made = numba.njit(PLANNER, cache=True, fastmath=False, error_model="numpy", **BORROWED)
    compiled: Callable[..., None] = made(function)
    return compiled


class Pointer(types.WrapperAddressProtocol):  # type: ignore[misc, unused-ignore]
    """A compiled planner as an address: handing it to the loop takes half as long."""

    def __init__(self, compiled: Any) -> None:
        made = compiled.get_compile_result(PLANNER)
        self._address = made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name)
        self._compiled = compiled  # keeps the code alive

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return PLANNER


@inlined
def greedy(q: Floats, h: int, s: int, actions: Ints, values: Floats) -> bool:
    """An action of the largest ``q[0,h,s]`` and its value; could there be a tie?"""
    best = q[0, h, s, 0]
    chosen = 0
    close = False
    for a in range(1, q.shape[3]):
        value = q[0, h, s, a]
        close |= not abs(value - best) > TIE  # infinity minus infinity is close, too
        chosen = a if value > best else chosen
        best = value if value > best else best
    actions[h, s] = chosen
    values[h, s] = best
    return close


@numba.njit(types.void(FLOATS_4, INTEGERS_2, GENERATOR), cache=True, **BORROWED)
def break_ties(q: Floats, actions: Ints, rng: np.random.Generator) -> None:
    """A random one of the best actions wherever there are several, from the last step to the first.

    After the induction and not inside: a generator in the inner loop costs more than the loop.
    """
    horizon, states, choices = q.shape[1:]
    for h in range(horizon - 1, -1, -1):
        for s in range(states):
            least = q[0, h, s, actions[h, s]] - TIE
            ties = 0
            for a in range(choices):
                ties += int(q[0, h, s, a] >= least)
            if ties > 1:
                rank = int(rng.random() * ties)
                chosen = 0
                for a in range(choices):  # no branch: who wins is a coin toss
                    tied = int(q[0, h, s, a] >= least)
                    chosen += a * tied * int(rank == 0)
                    rank -= tied
                actions[h, s] = chosen


@inlined
def backward_induction(
    memory: Floats, model: Floats, values: Floats, actions: Ints, cap: float
) -> bool:
    """Greedy for Q = model·V ahead, as two learners need it; could there be a tie?

    ``model[:, g]`` holds p, then r, then what every step ahead adds, each for all pairs; values are
    at most ``cap`` times the number of steps ahead.
    """
    horizon, states = actions.shape
    choices = memory.shape[3]
    for s in range(states):
        values[horizon, s] = 0.0
    close = False
    for h in range(horizon - 1, -1, -1):
        g = h if model.shape[1] > 1 else 0
        ahead = float(horizon - h)
        for s in range(states):
            best, chosen = 0.0, 0
            for a in range(choices):
                x = s * choices + a
                q = model[states, g, x] + ahead * model[states + 1, g, x]
                for t in range(states):
                    q += model[t, g, x] * values[h + 1, t]
                q = FORBIDDEN if memory[0, h, s, a] == FORBIDDEN else q
                memory[0, h, s, a] = q
                if a == 0:
                    best = q
                else:
                    close |= not abs(q - best) > TIE  # infinity minus infinity is close, too
                    chosen = a if q > best else chosen
                    best = q if q > best else best
            actions[h, s] = chosen
            values[h, s] = min(cap * ahead, best)
    return close
