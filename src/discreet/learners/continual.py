"""The continual schedule: one episode, one release, one new policy; shared by all its learners.

A continual learner exists twice. The *reference* (`ContinualLearner.next_policy`) reads like the
paper and takes `PrivateCounts`. The *compiled* form is a planner kernel fed with the coefficients
of each release; `privacy.simulation.kernels.run_block` asks it for a policy before every simulated
user. Tests prove that both walk through the same policies.

**Under `Shuffle`, in batches** (`Doubling`; ours, no paper has it). A shuffler hides people in a
crowd, so there is no release after every user. The same learner is asked for a policy whenever the
users have doubled, and reads the sum of all batches before. *Privacy*: every user is in one batch,
every batch is one release with the guarantee of its mechanism, policies are computed from releases;
so the run has that guarantee (parallel composition), whatever the batches are, which depend on
public numbers alone. *Noise* of a sum of batches: its variance is the sum of theirs, V, and a
counter stays below sqrt(2·V·ln(2/f)) up to f as a normal number does; that is what learners get for
E. Nothing is proven about regret. Ties, which are broken anew for every user in the continual
schedule, are broken for every user of a batch, too: the policy is uniform over tied actions.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types

from discreet._jit import BORROWED, inlined
from discreet._seeds import RunSeeds
from discreet._types import Floats, Ints, JsonObject, Plain
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.learners.base import (
    FORBIDDEN,
    Batch,
    BatchLearner,
    ContinualLearner,
    Problem,
    policy_from_dict,
    policy_to_dict,
)
from discreet.learners.result import RegretRecorder, Result, ReturnCurve, noise_deviations
from discreet.mdp.planning import RegretMeter
from discreet.mdp.policies import (
    DeterministicPolicy,
    Policy,
    StochasticPolicy,
    uniform_policy,
)
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism
from discreet.privacy.sensitivity import CENTRED, STATISTICS
from discreet.privacy.simulation.kernels import FLOATS_4, GENERATOR, INTEGERS_2, PLANNER
from discreet.privacy.simulation.users import SimulatedUsers, World, no_counts
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import Calibration, Local, TrustModel

_COEFFICIENTS = 1 << 12
"""Episodes whose coefficients are computed at once."""
TIE = 1e-12
"""Values closer than this are equal up to rounding: integer noise makes such ties common."""
ROWS = 7
"""Of a model, beside the S rows of probabilities."""


def three_statistics(counts: PrivateCounts) -> tuple[Floats, Floats, Floats]:
    """Transitions, visits and rewards; continual learners need all three."""
    if counts.transitions is None or counts.visits is None or counts.rewards is None:
        raise UnsupportedError(
            f"Continual learners need the statistics {', '.join(STATISTICS)}; one is missing."
        )
    return counts.transitions, counts.visits, counts.rewards


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
    mechanism = trust.calibrate(
        mdp.shape,
        schedule="continual",
        episodes=episodes,
        stationary=stationary,
        last_transitions=chosen.last_transitions,
    )
    problem = Problem(shape=mdp.shape, episodes=episodes, start=mdp.start, stationary=stationary)
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
            policy = learner.next_policy(counts)
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


@dataclass
class SummedBatches:
    """Releases of batches added up, as a continual mechanism: the noise that they carry together.

    Attributes:
        guarantee: of every batch.
        episodes: K.
        cells: counters of the three statistics.
        variance: of the noisiest counter.
    """

    guarantee: Guarantee
    episodes: int
    cells: int
    variance: float = 0.0

    def error_bounds(self, failure: float, users: Ints) -> Floats:
        """What the noise of a counter stays below now; the times are not looked at."""
        return np.full(len(users), math.sqrt(2 * self.variance * math.log(2 / failure)))

    def error_bound(self, users: int, failure: float) -> float:
        """The same for one time."""
        return float(self.error_bounds(failure, np.array([users]))[0])

    def summed_noise(self) -> None:
        """Its noise is no sum of equal parts, one for each user."""


class Doubling(BatchLearner):
    """A continual learner in batches, each as large as all before together (module docstring).

    The first has so many users that, spread evenly, every (s, a) of a step is visited as often as
    the noise has standard deviations.
    """

    statistics = CENTRED

    def __init__(
        self,
        problem: Problem,
        mechanism: BatchMechanism,
        rng: np.random.Generator,
        inside: ContinualLearner,
    ) -> None:
        super().__init__(problem, mechanism, rng)
        self.inside, self.settings = inside, inside.settings.to_dict()
        self._noise = cast("SummedBatches", inside.mechanism)
        groups = 1 if inside.settings.stationary else problem.shape.horizon
        sizes = (groups, *problem.shape.visits[1:])
        self._sums = [np.zeros((*sizes, problem.shape.states)), np.zeros(sizes), np.zeros(sizes)]
        self._users = 0
        self._pending: Batch | None = None

    @classmethod
    def of(
        cls,
        kind: type[ContinualLearner],
        problem: Problem,
        mechanism: BatchMechanism,
        rng: np.random.Generator,
        settings: Mapping[str, object],
    ) -> "Doubling":
        """A learner of this kind in batches."""
        chosen = kind.settings_type.choose(settings, learner=kind.name)
        if not chosen.last_transitions:
            raise UnsupportedError(
                f"Expected literal=False under shuffle, got literal=True: learner {kind.name!r} "
                f"leaves out the last transition under local privacy only."
            )
        chosen = replace(chosen, stationary=problem.stationary)
        pairs = problem.shape.states * problem.shape.actions
        cells = pairs * (problem.shape.states + 2)
        cells *= 1 if chosen.stationary else problem.shape.horizon
        noise = SummedBatches(mechanism.guarantee, problem.episodes, cells)
        inside = kind(problem, cast("ContinualMechanism", noise), rng, chosen)
        made = cls(problem, mechanism, rng, inside)
        done, inside.policies = 0, 0
        while done < problem.episodes:
            done, inside.policies = done + made.size_after(done), inside.policies + 1
        return made

    def size_after(self, done: int) -> int:
        """Of the batch after ``done`` users; a rest that is too small to be released joins it."""
        problem, fewest = self.problem, self.mechanism.min_users
        pairs = problem.shape.states * problem.shape.actions
        noise = max(self.mechanism.noise_variance(fewest).values(), default=0.0)
        users = max(done or math.ceil(pairs * math.sqrt(noise)), fewest)
        left = problem.episodes - done
        return left if left - users < fewest else users

    def ask(self) -> Batch:
        if self._pending is None:
            self._pending = Batch(self._policy(), self.size_after(self._users))
        return self._pending

    def _policy(self) -> Policy:
        none = dict.fromkeys(STATISTICS, 0.0)
        mask = np.ones(self._sums[1].shape, np.bool_)
        guarantee = self.mechanism.guarantee
        transitions, visits, rewards = self._sums
        counts = PrivateCounts(self._users, transitions, visits, rewards, none, mask, guarantee)
        policy = self.inside.next_policy(counts)
        if not isinstance(policy, DeterministicPolicy):
            return policy
        best = self.inside.q.max(axis=-1, keepdims=True)
        tied = self.inside.q >= best - TIE
        if (tied.sum(axis=-1) <= 1).all():
            return policy
        return StochasticPolicy(tied / tied.sum(axis=-1, keepdims=True))

    def tell(self, counts: PrivateCounts) -> None:
        pooled = len(self._sums[1]) == 1
        for i, told in enumerate(three_statistics(counts)):
            self._sums[i] = self._sums[i] + (told.sum(axis=0, keepdims=True) if pooled else told)
        variance = max(counts.noise_variance.values(), default=0.0)
        variance += max(self.mechanism.visit_variance, 0.0) * counts.users
        self._noise.variance += variance * (self.problem.shape.horizon if pooled else 1)
        self._users, self._pending = self._users + counts.users, None

    def state(self) -> dict[str, Plain]:
        asked: dict[str, Plain] | None = None
        if self._pending is not None:
            asked = {"users": self._pending.users, **policy_to_dict(self._pending.policy)}
        return {
            "users": self._users,
            "variance": self._noise.variance,
            "sums": [total.tolist() for total in self._sums],
            "inside": {name: part.tolist() for name, part in self.inside.state().items()},
            "asked": asked,
        }

    def restore(self, state: JsonObject) -> None:
        self._users = state["users"]
        self._noise.variance = state["variance"]
        self._sums = [np.array(total, np.float64) for total in state["sums"]]
        self.inside.restore({name: np.array(part) for name, part in state["inside"].items()})
        asked, self._pending = state["asked"], None
        if asked is not None:
            self._pending = Batch(policy_from_dict(asked), asked["users"])


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
        self._actions = np.zeros(mdp.shape.visits[:2], np.int64)
        self._probabilities = uniform_policy(mdp.shape).probabilities.copy()

    def blocks(self) -> Iterator[Floats]:
        """Run all episodes; yields the regrets of one block after the other."""
        from discreet.privacy.simulation.kernels import NextPolicy, Scratch, run_block

        learner, shape = self.learner, self.learner.problem.shape
        groups, states, choices = self.stream.public.visits.shape
        model = np.zeros((states + ROWS, groups, states * choices))
        compiled, memory = learner.planner(), learner.memory()
        if compiled is None:
            raise UnsupportedError(f"{learner.name} has no compiled planner.")
        # Compiled code does not look where its arrays end.
        kept = _KEPT.get(compiled)
        least = math.prod(shape.visits)
        least += kept(groups * states * choices, states) if kept else 0
        if memory.shape[1:] != shape.visits or memory.size < least:
            raise InvalidInputError(
                f"This planner needs a memory [M, H, S, A] with (H, S, A) = {shape.visits} and at "
                f"least {least} numbers, got one of shape {memory.shape}: memory() of its learner "
                f"has to make it."
            )
        scratch = Scratch(memory, model, np.zeros((shape.horizon + 1, shape.states)))
        policy = NextPolicy(
            self._actions, self._probabilities, np.full_like(self._actions, -1), np.array([np.nan])
        )
        planner, start, rows = Pointer(compiled), 0, np.zeros((0, 0))
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
        if self.learner.stochastic:
            return StochasticPolicy(self._probabilities)
        return DeterministicPolicy(self._actions)


def walk(
    learner: ContinualLearner, mdp: TabularMDP, seeds: RunSeeds
) -> Iterator[tuple[Policy, float]]:
    """Plan, play, release; yields each policy and its regret."""
    stream, meter = SimulatedUsers(mdp, learner.mechanism, seeds), RegretMeter(mdp)
    counts = no_counts(learner.mechanism)
    for _ in range(learner.mechanism.episodes):
        policy = learner.next_policy(counts)
        yield policy, meter.regret(policy)
        counts = stream.add(policy, learner.rng)


def choose(q: Floats, rng: np.random.Generator) -> int:
    """An action of the largest Q value, ties (up to rounding) broken uniformly at random."""
    best = np.flatnonzero(q >= q.max() - TIE)
    return int(best[0]) if len(best) == 1 else int(best[int(rng.random() * len(best))])


_KEPT: dict[Callable[..., None], Callable[[int, int], int]] = {}


def planner(
    function: Callable[..., None], kept: Callable[[int, int], int] | None = None
) -> Callable[..., None]:
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

    Args:
        function: the planner.
        kept: numbers that it needs in its memory after the first Q, for that many pairs (g, s, a)
            and states; none.
    """
    made = numba.njit(PLANNER, cache=True, fastmath=False, error_model="numpy", **BORROWED)
    compiled: Callable[..., None] = made(function)
    if kept is not None:
        _KEPT[compiled] = kept
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
