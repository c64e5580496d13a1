"""flow-ucb: optimism on batches, with everything that costs no privacy. Ours.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. Sizes and number of batches depend on
released statistics only. **No regret bound is claimed.**

A round:

1. *Plan.* Backward induction with Q = r + P·V + width·sd, at most 1 + max V (a reward, then the
   best next state); an action that was never played is worth that much. With weighted visits
   N = sum w·n, sampling weight M = sum w²·n and noise variances F (transitions), G (rewards) and
   D (visits), each sum w²·sigma²,

       sd² = [M·(Var_P V + r(1-r)) + F·sum_s' (V(s') - P·V)² + G + D·(r - c)² + (2(H-h)·M/N)²]
             / (N - sqrt D)²

   is the variance of the estimated Q: sampling, the noise on the S transition counters of that row
   (it moves P·V only as far as V differs between states), the noise on its reward counter and on
   its visits (c = 1/2 where rewards are released as C = sum of r - 1/2: R = C + N/2), and a
   lower-order term for rows seen a few times. Counts that are not negative look like visits even
   where nobody came, so only the visits above their own noise are certain, and a row without
   certain visits counts as never played. Where reports show only some of the visits (one step per
   user), each visit carries more variance (`BatchPlan.visit_variance`).
   ``width`` = ``confidence``·ln(t + HSA)^``growth`` grows with the users t so far: caution is dear
   at first and cheap later.
2. *Size the batch by what it can teach.* The expected bonus along the policy, or half the value the
   policy promises if that is less, is what the learner does not know about it. The batch is the
   smallest that is predicted to leave ``shrink`` of it (sqrt(``shrink``) where noise grows with the
   users, as in local reports), and no larger than all batches before it together. So the first
   batch is large enough to rise above the noise, exploration of a new action costs what it needs at
   any K, and well-known policies are played in growing batches.
3. *Release* transitions and rewards of the played actions only; visits follow from the flow, and
   transitions of the last step teach nothing (L2 = 3.81 at H = 6, instead of sqrt(6H) = 6 for
   three plain statistics).
4. *Project* the transitions onto consistent flows (`discreet.privacy.postprocess.flow`).
5. *Accumulate* with credit w = m/(m + sigma²/``ease``) per (h, s, a), where m is the number of
   visits the model predicted before the batch: a batch that hardly visits a row adds hardly any
   noise to it. Pooled over steps if the problem is declared stationary.

The last batch teaches nobody: it plays the greedy policy of the model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, BatchLearner, Problem
from discreet.learners.flow_ucb.evidence import Evidence
from discreet.learners.registry import LearnerSpec
from discreet.learners.settings import ConstantSet, Settings
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.plans import BatchPlan
from discreet.privacy.postprocess.flow import consistent_flow
from discreet.privacy.postprocess.looks import Looks, inflow_visits
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, kw_only=True)
class FlowSettings(Settings):
    """The few numbers of flow-ucb; there is no printed set of constants to choose instead.

    Attributes:
        confidence: the one multiplier on all bonuses; None: `usual_confidence`.
        growth: the width is ``confidence``·ln(users so far + HSA) to this power; None: 1.5, or 1
            with pooling over steps.
        shrink: a batch is sized to shrink the expected bonus of its policy by this factor.
        ease: variance per visit against which noise is weighed in a batch's credit.
    """

    constants: ConstantSet = "practical"
    confidence: float | None = None
    growth: float | None = None
    shrink: float = 0.8
    ease: float = 0.1

    def check(self) -> None:
        """All positive, and a batch leaves less than there was."""
        if self.constants == "theory":
            raise InvalidInputError(
                "Expected constants='practical', got constants='theory': no bound is proven for "
                "flow-ucb, so it has no printed constants; drop the setting."
            )
        given = {"confidence": self.confidence, "growth": self.growth}
        _validate.positive(**{name: value for name, value in given.items() if value is not None})
        _validate.positive(shrink=self.shrink, ease=self.ease)
        _validate.probability(shrink=self.shrink)

    def resolved(self, problem: Problem) -> "FlowSettings":
        """With the values that None stands for, in this problem."""
        usual = USUAL_GROWTH[problem.stationary]
        return replace(
            self,
            confidence=usual_confidence(problem) if self.confidence is None else self.confidence,
            growth=usual if self.growth is None else self.growth,
        )


USUAL_CONFIDENCE = {False: 0.0088, True: 0.048}
"""Without and with pooling over steps. How these values were chosen is on the docs page."""
USUAL_GROWTH = {False: 1.5, True: 1.0}


def usual_confidence(problem: Problem) -> float:
    """Times the fourth root of the number of rows: the more, the more chances to be misled."""
    rows = problem.shape.visits[1:] if problem.stationary else problem.shape.visits
    return float(USUAL_CONFIDENCE[problem.stationary] * math.prod(rows) ** 0.25)


PROMISED = 0.5
"""A policy cannot hide more than a part of the value it promises: the goal of a batch is measured
against this share of it, not against bonuses that add up to many times what can be earned."""


class Request(NamedTuple):
    """A batch that was asked for, with the visits the model predicts per user."""

    actions: IntArray
    users: int
    occupancy: FloatArray


class FlowUCB(BatchLearner):
    """Optimism on flow-consistent batches.

    Args:
        problem: public facts.
        plan: a calibrated batch release of transitions and rewards.
        rng: breaks ties.
        settings: see `FlowSettings`.
    """

    statistics: ClassVar[tuple[str, ...]] = ("transitions", "rewards")
    last_transitions: ClassVar[bool] = False
    centred: ClassVar[bool] = True
    settings_type = FlowSettings

    def __init__(
        self, problem: Problem, plan: BatchPlan, rng: np.random.Generator, **settings: Any
    ) -> None:
        super().__init__(problem, plan, rng)
        chosen = FlowSettings.choose(settings, learner="flow-ucb").resolved(problem)
        self.settings = {**chosen.to_dict(), "stationary": problem.stationary}
        del self.settings["constants"]  # there is one set: it needs no name
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._evidence = Evidence.empty(layers, shape.states, shape.actions)
        self._initial = problem.start / problem.start.sum()
        self._factors = visit_noise_factors(
            shape.states,
            shape.horizon,
            int(problem.start.sum()),
            last_transitions=plan.last_transitions,
            look=_second_look(plan),
        )
        self._centre = 0.5 if plan.centred else 0.0
        self._told = 0
        self._noise_table: dict[int, tuple[float, float]] = {}
        self._request: Request | None = None

    def ask(self) -> Batch:
        """The optimistic policy of the model, for as many users as it needs to learn from it."""
        if self._request is None:
            self._request = self._next_request()
        return Batch(DeterministicPolicy(self._request.actions), self._request.users)

    def tell(self, counts: PrivateCounts) -> None:
        """Project onto consistent flows, then add with each row's credit."""
        request = self._request or self._next_request()
        noise = dict(counts.noise_variance)
        flow, visits = self._flow(counts, noise["transitions"])
        rewards = np.asarray(counts.row_rewards) + self._centre * visits
        steps, states, actions = np.nonzero(counts.played)
        begun = (steps > 0) | self.problem.start[states]
        if not begun.all():
            flow, visits, rewards = flow[begun], visits[begun], rewards[begun]
            steps, states, actions = steps[begun], states[begun], actions[begun]
        expected = counts.users * request.occupancy[steps, states]
        weight = self._credit(expected, noise["transitions"])
        rows = (steps * 0 if self.problem.stationary else steps, states, actions)
        self._add(rows, steps, weight, flow, visits, rewards, expected, noise)
        self._told += counts.users
        self._request = None

    def _flow(self, counts: PrivateCounts, variance: float) -> tuple[FloatArray, FloatArray]:
        """Transitions ``[R, S]`` and visits ``[R]`` of the played rows, made consistent."""
        transitions = np.asarray(counts.row_transitions)
        if variance == 0:
            where, horizon = np.nonzero(counts.played), self.problem.shape.horizon
            if counts.last_transitions:
                return transitions, transitions.sum(axis=-1)
            return transitions, inflow_visits(transitions, where, horizon)
        flow = consistent_flow(
            transitions,
            users=counts.users,
            played=counts.played,
            start=self.problem.start,
            variance=variance,
            looks=Looks.of(counts),
        )
        return flow.transitions, flow.visits

    def _credit(self, expected: FloatArray, variance: float) -> FloatArray:
        if variance == 0:
            return np.ones_like(expected)
        weight: FloatArray = expected / (expected + variance / self._ease)
        return weight

    @property
    def _ease(self) -> float:
        """``ease`` is for visits that are all reported; thinner reports vary more per visit."""
        return float(self.settings["ease"] * (1 + self.plan.visit_variance))

    def _add(
        self,
        rows: tuple[IntArray, IntArray, IntArray],
        steps: IntArray,
        weight: FloatArray,
        transitions: FloatArray,
        visits: FloatArray,
        rewards: FloatArray,
        expected: FloatArray,
        noise: dict[str, float],
    ) -> None:
        """Weighted sums, and the variances they carry.

        Reports that show only a part of the visits add variance to every visit; half of it is left
        in a state's total, which the flow measures twice: coming in and going out.
        """
        from discreet.learners.flow_ucb import kernels

        evidence = self._evidence
        seen, per_visit = np.maximum(visits, expected), self.plan.visit_variance
        doubt = noise["transitions"] * self._factors[steps] + per_visit * seen / 2
        places = evidence.places(rows, np.asarray(transitions.any(axis=-1)))
        kernels.add_rows(places, weight, transitions, evidence.transitions)
        np.add.at(evidence.rewards, rows, weight * rewards)
        np.add.at(evidence.visits, rows, weight * visits)
        np.add.at(evidence.sampling, rows, weight**2 * seen * (1 + per_visit))
        np.add.at(evidence.noise, rows, weight**2 * noise["transitions"])
        np.add.at(evidence.reward_noise, rows, weight**2 * noise["rewards"])
        np.add.at(evidence.visit_noise, rows, weight**2 * doubt)

    def _width(self) -> float:
        rows = math.prod(self.problem.shape.visits)
        growth = self.settings["growth"]
        return float(self.settings["confidence"] * math.log(self._told + rows) ** growth)

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model; actions that are not known are shunned."""
        nobody = np.zeros(self.problem.shape.visits)
        return DeterministicPolicy(self._plan(self._model(), 0.0, nobody)[0])

    def _model(self) -> FloatArray:
        """Transition probabilities of the rows that are known."""
        from discreet.learners.flow_ucb import kernels

        evidence = self._evidence
        probabilities = np.empty_like(evidence.known)
        kernels.model(evidence.number, evidence.transitions, evidence.visits, probabilities)
        return probabilities

    def _next_request(self) -> Request:
        from discreet.learners.flow_ucb import kernels

        evidence, probabilities = self._evidence, self._model()
        tie = self.rng.random(self.problem.shape.visits)
        width = self._width()
        actions, occupancy, values, bonus, moments = self._plan(probabilities, width, tie)
        promised = float(self._initial @ values[0])
        unknown = float((occupancy * bonus).sum())

        def shrunk(users: float) -> bool:
            after = kernels.uncertainty_after(
                evidence,
                users,
                *self._noise(users),
                self.plan.visit_variance,
                self._factors,
                self._ease,
                occupancy,
                actions,
                moments,
                width,
                self._centre,
            )
            return bool(after <= goal)

        goal = self._goal(unknown, promised)
        left = self.problem.episodes - self._told
        users = max(self._size(shrunk, left), self.plan.least_users)
        users = _rounded(users, left)
        if left - users < max(users / 2, self.plan.least_users):
            actions, occupancy, *_ = self._plan(probabilities, self._last_width(width), tie)
            users = left
        return Request(actions, users, occupancy)

    def _goal(self, unknown: float, promised: float) -> float:
        """What a batch may leave unknown.

        With noise per batch, small batches waste users: all below `PROMISED` is one batch's work.
        Where noise grows with the batch (local) they waste nothing, and steps are half as large.
        """
        growth = self._noise_growth()
        excess = max(1.0, unknown / (PROMISED * promised)) if promised > 0 else 1.0
        shrink = self.settings["shrink"] ** (1 - growth / 2)
        return float(shrink * unknown / excess ** (1 - growth))

    def _noise_growth(self) -> float:
        """0 where noise is the same for every batch, 1 where its variance grows with the users."""
        one, two = self._noise_at(10)[0], self._noise_at(11)[0]
        return min(max(math.log2(two / one), 0.0), 1.0) if one > 0 else 0.0

    def _size(self, enough: Callable[[int], bool], left: int) -> int:
        """The smallest batch that is ``enough``, no larger than all before it together.

        The first batch has nothing to double: it may take a tenth of all users at most.
        """
        low, high = 1, max(1, min(left, self._told or left // 10))
        if not enough(high):
            return high
        while high - low > max(1, low // 100):
            middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def _last_width(self, width: float) -> float:
        """The last batch teaches nobody: it plays the greedy policy (``width`` is not used)."""
        return 0.0

    def _noise(self, users: float) -> tuple[float, float]:
        """Variances of the two statistics, interpolated between powers of two.

        Exact for noise that is constant (central, shuffle) or proportional to the users (local);
        a plan may need milliseconds for each size, and sizing a batch asks for many.
        """
        power = max(0, math.floor(math.log2(users)))
        low, high = self._noise_at(power), self._noise_at(power + 1)
        share = users / 2**power - 1
        transitions, rewards = ((1 - share) * a + share * b for a, b in zip(low, high, strict=True))
        return transitions, rewards

    def _noise_at(self, power: int) -> tuple[float, float]:
        if power not in self._noise_table:
            noise = self.plan.noise_variance(max(2**power, self.plan.least_users))
            self._noise_table[power] = noise["transitions"], noise["rewards"]
        return self._noise_table[power]

    def _plan(
        self, probabilities: FloatArray, width: float, tie: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        from discreet.learners.flow_ucb import kernels

        horizon, states = self.problem.shape.horizon, self.problem.shape.states
        actions = np.zeros((horizon, states), np.int64)
        values, bonus = np.zeros((horizon + 1, states)), np.zeros((horizon, states))
        occupancy, moments = np.zeros((horizon, states)), np.zeros((horizon, states, 3))
        out = (actions, values, bonus, moments)
        kernels.optimistic(self._evidence, probabilities, width, self._centre, tie, *out)
        kernels.state_occupancy(
            self._evidence.number, probabilities, actions, self._initial, occupancy
        )
        return actions, occupancy, values, bonus, moments

    def state(self) -> dict[str, Any]:
        """Evidence, progress, the pending request and the state of the tie-breaker."""
        request = self._request
        return {
            "told": self._told,
            "evidence": self._evidence.to_dict(),
            "request": request
            and [request.actions.tolist(), request.users, request.occupancy.tolist()],
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        self._told = int(state["told"])
        self._evidence = Evidence.from_dict(state["evidence"])
        self._request = None
        if state["request"]:
            actions, users, occupancy = state["request"]
            self._request = Request(np.array(actions, np.int64), int(users), np.array(occupancy))
        self.rng.bit_generator.state = state["rng"]


def visit_noise_factors(
    states: int,
    horizon: int,
    starts: int,
    *,
    last_transitions: bool = True,
    look: float = 0.0,
) -> FloatArray:
    """Variance of a state's visits at each step, after flow consistency, per counter's variance.

    The visits of a layer sum to the users, which leaves 1 - 1/k of the variance with k states. They
    are measured by the ``states`` counters going out (not at the last step without its
    transitions), from step 1 on by the counters coming in, one per state of the layer before, and
    by a second look, if there is one: with one start, step 0 is exact and step 1 almost.

    >>> visit_noise_factors(states=4, horizon=3, starts=1).tolist()
    [0.0, 0.6, 1.5]

    Args:
        states: S.
        horizon: H.
        starts: the states an episode can begin in.
        last_transitions: whether the transitions of the last step are released.
        look: variance of a transition counter over that of a second look at the visits.
    """
    inside = 1 - 1 / states
    factors = np.full(horizon, inside * states / 2)
    factors[0] = (1 - 1 / starts) * states
    factors[1:2] = inside / (1 / starts + 1 / states)
    if not last_transitions:
        factors[-1] = inside * (starts if horizon == 2 else states)
    if look:
        free = np.full(horizon, inside)
        free[0] = 1 - 1 / starts
        factors = np.where(free > 0, factors * free / np.maximum(free + factors * look, 1e-300), 0)
    return factors


def _second_look(plan: BatchPlan) -> float:
    """Variance of transitions over that of visits that are released besides, if they are."""
    noise = plan.noise_variance(plan.least_users)
    return noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0


def _rounded(users: int, left: int) -> int:
    """Up to two significant digits: round numbers are easier to recruit and to calibrate for."""
    unit = int(10 ** max(0, len(str(users)) - 2))
    return min(left, -(-users // unit) * unit)


SPECS = {
    "flow-ucb": LearnerSpec(
        name="flow-ucb",
        summary="optimism on flow-consistent batches: the practical private learner",
        paper="ours",
        rhythm="batch",
        trusts=("shuffle", "central", "local", "none"),
        bound="none proven",
        make=FlowUCB,
    )
}
