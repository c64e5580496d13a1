"""flow-ucb, first generation, kept for comparison: optimism on batches. Ours.

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
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.flow_ucb_first import sizing
from benchmarks.flow_ucb_first.evidence import (
    Evidence,
    fill_arrays,
    known_rows,
    plain_arrays,
    row_places,
)
from discreet import _validate
from discreet._types import FloatArray, IntArray
from discreet.learners.base import Batch, FlowLearner, Problem
from discreet.learners.settings import OwnSettings
from discreet.mdp.policies import DeterministicPolicy
from discreet.privacy.postprocess.flow import released_flow
from discreet.privacy.statistics import PrivateCounts


@dataclass(frozen=True, kw_only=True)
class FlowSettings(OwnSettings):
    """The few numbers of the first flow-ucb.

    Attributes:
        confidence: the one multiplier on all bonuses; None: `usual_confidence`.
        growth: the width is ``confidence``·ln(users so far + HSA) to this power; None: 1.5, or 1
            with pooling over steps.
        shrink: a batch is sized to shrink the expected bonus of its policy by this factor.
        ease: variance per visit against which noise is weighed in a batch's credit.
    """

    confidence: float | None = None
    growth: float | None = None
    shrink: float = 0.8
    ease: float = 0.1

    def check(self) -> None:
        """All positive, and a batch leaves less than there was."""
        super().check()
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


class Request(NamedTuple):
    """A batch that was asked for, with the visits the model predicts per user."""

    actions: IntArray
    users: int
    occupancy: FloatArray


class FlowUCB(FlowLearner[FlowSettings]):
    """Optimism on flow-consistent batches."""

    name = "flow-ucb-first"
    settings_type = FlowSettings

    def begin(self) -> None:
        """Nothing is known."""
        problem, plan = self.problem, self.plan
        self.settings = self.chosen.resolved(problem).to_dict()
        self.settings["stationary"] = problem.stationary
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._evidence = Evidence.empty(layers, shape.states, shape.actions)
        self._initial = problem.start / problem.start.sum()
        self._factors = sizing.plan_factors(problem, plan)
        self._centre = 0.5 if plan.centred else 0.0
        self._told = 0
        self._noise = sizing.Noise(plan)
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
        flow, visits = released_flow(counts, self.problem.start)
        rewards = np.asarray(counts.row_rewards) + self._centre * visits
        steps, states, actions = np.nonzero(counts.played)
        begun = (steps > 0) | self.problem.start[states]
        if not begun.all():
            flow, visits, rewards = flow[begun], visits[begun], rewards[begun]
            steps, states, actions = steps[begun], states[begun], actions[begun]
        expected = counts.users * request.occupancy[steps, states]
        weight = sizing.credit(expected, noise["transitions"], self._ease)
        rows = (steps * 0 if self.problem.stationary else steps, states, actions)
        self._add(rows, steps, weight, flow, visits, rewards, expected, noise)
        self._told += counts.users
        self._request = None

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
        from benchmarks.flow_ucb_first.kernels import add_rows

        evidence = self._evidence
        seen, per_visit = np.maximum(visits, expected), self.plan.visit_variance
        doubt = noise["transitions"] * self._factors[steps] + per_visit * seen / 2
        places = row_places(evidence.number, rows, np.asarray(transitions.any(axis=-1)))
        add_rows(places, weight, transitions, evidence.transitions)
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
        from benchmarks.flow_ucb_first import kernels

        evidence = self._evidence
        probabilities = np.empty_like(known_rows(evidence.number, evidence.transitions))
        kernels.model(evidence.number, evidence.transitions, evidence.visits, probabilities)
        return probabilities

    def _next_request(self) -> Request:
        from benchmarks.flow_ucb_first import kernels

        evidence, probabilities = self._evidence, self._model()
        tie = self.rng.random(self.problem.shape.visits)
        width = self._width()
        actions, occupancy, values, bonus, moments = self._plan(probabilities, width, tie)
        promised = float(self._initial @ values[0])
        unknown = float((occupancy * bonus).sum())

        def shrunk(users: int) -> bool:
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

        goal = sizing.goal(unknown, promised, self.settings["shrink"], self._noise.growth)
        left = self.problem.episodes - self._told
        users = sizing.rounded(sizing.smallest(shrunk, sizing.most_users(self._told, left)), left)
        if left - users < users / 2:  # the last batch teaches nobody
            actions, occupancy, *_ = self._plan(probabilities, 0.0, tie)
            users = left
        return Request(actions, users, occupancy)

    def _plan(
        self, probabilities: FloatArray, width: float, tie: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        from benchmarks.flow_ucb_first import kernels

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
            "evidence": plain_arrays(self._evidence._asdict()),
            "request": request
            and [request.actions.tolist(), request.users, request.occupancy.tolist()],
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from `state`."""
        self._told = int(state["told"])
        fill_arrays(self._evidence._asdict(), state["evidence"])
        self._request = None
        if state["request"]:
            actions, users, occupancy = state["request"]
            self._request = Request(np.array(actions, np.int64), int(users), np.array(occupancy))
        self.rng.bit_generator.state = state["rng"]
