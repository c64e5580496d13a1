"""flow-ucb: optimism on batches, with everything that costs no privacy. Ours.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. Sizes and number of batches depend on
released statistics only. **No regret bound is claimed.**

A round:

1. *Believe* (`belief`). Steps are pooled where released counts do not contradict it (`gate`), and
   not where a step's own counts are due (`own_step`); a problem that was declared stationary is
   pooled throughout.
2. *Plan* (`plan`). Backward induction with Q = r + P·V + width·sd, at most 1 + max V (a reward,
   then the best next state); an action that was never played is worth that much. With weighted
   visits N = sum w·n, sampling weight M = sum w²·n and noise variances F (transitions), G (rewards)
   and D (visits), each sum w²·sigma²,

       sd² = [M·Var_P V + F·sum_s' (V(s') - P·V)² + (2(H-h)·M/N)²] / (N - sqrt D)²
             + [M·r(1-r) + G + D·(r - c)² + (2M/N)²] / (N - sqrt D)²

   is the variance of the estimated Q: of transitions, whose noise moves P·V only as far as V
   differs between states, and of rewards (c = 1/2 where rewards are released as C = sum of r - 1/2:
   R = C + N/2), each with its own weights, and with a lower-order term for rows seen a few times.
   Counts that are not negative look like visits even where nobody came, so only the visits above
   their own noise are certain, and a row without certain visits counts as never played. Projected
   noise leans one way: F holds (0.2·sum w·sigma)² besides. Where reports show only some of the
   visits (one step per user), each visit carries more variance (`BatchPlan.visit_variance`).
   ``width`` = 2·``confidence``·ln(1 + min(t, users left)/N), t the users so far and N the rarer of
   a row's rewards and transitions: caution for rows seen less, and none for the sake of users who
   will not come.
3. *Size the batch by what it can teach* (`sizing`). Where users are scarce, or a batch has room, it
   holds several plans (`mixture`).
4. *Release* transitions and rewards of the played actions only; visits follow from the flow, and
   transitions of the last step teach nothing (L2 = 3.81 at H = 6, instead of sqrt(6H) = 6 for
   three plain statistics).
5. *Project* the transitions onto consistent flows (`discreet.privacy.postprocess.flow`).
6. *Accumulate* (`evidence`) with credit w = m/(m + sigma²/``ease``) per (h, s, a), where m is the
   number of visits the model predicted before the batch: a batch that hardly visits a row adds
   hardly any noise to it.

The last batch teaches nobody: it plays the greedy policy of the model.
"""

import math
from typing import NamedTuple

import numpy as np

from discreet._plain import JsonObject, Plain
from discreet._types import FloatArray, IntArray
from discreet.learners.base import Batch, FlowLearner
from discreet.learners.flow_ucb import sizing
from discreet.learners.flow_ucb.belief import Belief, believed
from discreet.learners.flow_ucb.evidence import (
    BIAS,
    COLUMNS,
    DOUBT,
    NOISE,
    SAMPLING,
    TOTAL,
    VISITS,
    Evidence,
)
from discreet.learners.flow_ucb.gate import nothing_shared, shared_rows
from discreet.learners.flow_ucb.mixture import Part, mixed, several
from discreet.learners.flow_ucb.own_step import LOOK, OwnStepCheck
from discreet.learners.flow_ucb.plan import Planner
from discreet.learners.flow_ucb.settings import (
    SCARCE,
    FlowSettings,
    users_per_unit,
    usual_confidence,
)
from discreet.learners.flow_ucb.visit_noise import plan_factors, visits_to_see
from discreet.learners.registry import LearnerSpec, by_name
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.privacy.postprocess.flow import released_flow
from discreet.privacy.statistics import PrivateCounts


class Request(NamedTuple):
    """A batch that was asked for, with how likely the model is in each state ``[H, S]``."""

    policy: DeterministicPolicy | StochasticPolicy
    users: int
    occupancy: FloatArray


class FlowUCB(FlowLearner[FlowSettings]):
    """Optimism on flow-consistent batches."""

    name = "flow-ucb"
    summary = "optimism on flow-consistent batches: the practical private learner"
    settings_type = FlowSettings

    def begin(self) -> None:
        """Nothing is known; the usual confidence follows from the users and the noise."""
        problem, plan = self.problem, self.plan
        self._noise = sizing.Noise(plan)
        self._plenty = users_per_unit(problem, self._noise(problem.episodes)[0])
        self.settings["stationary"] = problem.stationary
        if self.chosen.confidence is None:
            self.settings["confidence"] = usual_confidence(self._plenty)
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._evidence = Evidence.empty(layers, shape.states, shape.actions)
        self._factors = plan_factors(problem, plan)
        initial = problem.start / problem.start.sum()
        self._planner = Planner(shape, initial, 0.5 if plan.centred else 0.0)
        self._check = OwnStepCheck(self._planner, self._factors)
        self._told = 0
        self._batches = 0
        self._request: Request | None = None

    def ask(self) -> Batch:
        """The optimistic policy of the model, for as many users as it needs to learn from it."""
        if self._request is None:
            self._request = self._next_request()
        return Batch(self._request.policy, self._request.users)

    def tell(self, counts: PrivateCounts) -> None:
        """Project onto consistent flows, then add with each row's credit."""
        request = self._request or self._next_request()
        rows = np.nonzero(counts.played)
        chosen = request.policy.distribution(self.problem.shape)[rows]
        flow, visits = self._flow(counts, rows, chosen)
        rewards = np.asarray(counts.row_rewards) + self._planner.centre * visits
        begun = (rows[0] > 0) | self.problem.start[rows[1]]
        expected = counts.users * request.occupancy[rows[:2]] * chosen
        if not begun.all():
            rows = tuple(axis[begun] for axis in rows)
            flow, visits, rewards = flow[begun], visits[begun], rewards[begun]
            expected = expected[begun]
        self._add(rows, flow, visits, rewards, expected, counts)
        self._told += counts.users
        self._batches += 1
        self._request = None

    def _flow(
        self, counts: PrivateCounts, rows: tuple[IntArray, ...], chosen: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Transitions ``[R, S]`` and visits ``[R]`` of the played rows, made consistent.

        Where nothing tells the last step's visits of a row but what flows into its state, actions
        are taken as often as the policy says.
        """
        flow, visits = released_flow(counts, self.problem.start)
        if counts.row_visits is None and not counts.last_transitions:
            horizon = self.problem.shape.horizon
            last = rows[0] == horizon - 1
            arrived = flow[rows[0] == horizon - 2].sum(axis=0)
            visits[last] = arrived[rows[1][last]] * chosen[last]
        return flow, visits

    def _add(
        self,
        rows: tuple[IntArray, ...],
        transitions: FloatArray,
        visits: FloatArray,
        rewards: FloatArray,
        expected: FloatArray,
        counts: PrivateCounts,
    ) -> None:
        """Weighted sums, and the variances they carry.

        Reports that show only a part of the visits add variance to every visit; half of it is left
        in a state's total, which the flow measures twice: coming in and going out.
        """
        from discreet.learners.flow_ucb import belief_kernels

        evidence, steps = self._evidence, rows[0]
        noise, reward_noise = (counts.noise_variance[name] for name in self.statistics)
        seen, per_visit = np.maximum(visits, expected), self.plan.visit_variance
        doubt = noise * self._factors[steps] + per_visit * seen / 2
        moved = sizing.credit(expected, noise, self._ease)
        if not counts.last_transitions:
            moved = np.where(steps == self.problem.shape.horizon - 1, 0.0, moved)
        gained = sizing.credit(expected, reward_noise, self._ease)
        rows = (steps * 0 if self.problem.stationary else steps, *rows[1:])
        places = evidence.places(rows, np.asarray(transitions.any(axis=-1)) & (moved > 0))
        belief_kernels.add_rows(places, moved, transitions, evidence.transitions)
        moves = _columns(moved, visits, seen * (1 + per_visit), noise, doubt)
        moves[:, BIAS] = moved * math.sqrt(noise)
        gains = _columns(gained, visits, seen, reward_noise, doubt)
        gains[:, NOISE] += gained**2 * seen * self.plan.reward_visit_variance
        gains[:, TOTAL] = gained * rewards
        np.add.at(evidence.moves, rows, moves)
        np.add.at(evidence.gains, rows, gains)

    @property
    def _ease(self) -> float:
        """``ease`` is for visits that are all reported; thinner reports vary more per visit."""
        return float(self.settings["ease"] * (1 + self.plan.visit_variance))

    @property
    def _left(self) -> int:
        return self.problem.episodes - self._told

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model; actions that are not known are shunned."""
        nobody = np.zeros(self.problem.shape.visits)
        return DeterministicPolicy(self._planner.greedy(self._belief(), nobody).actions)

    def _belief(self) -> Belief:
        """The evidence, pooled where the gate and the own-step check allow it."""
        evidence = self._evidence
        if self.problem.stationary or self.settings["pooling"] == "never" or not self._told:
            return believed(evidence, nothing_shared(evidence))
        belief = believed(evidence, shared_rows(evidence, self._told, self._planner.centre))
        return self._checked(belief)

    def _checked(self, belief: Belief) -> Belief:
        look = self._noise(max(1.0, LOOK * self._told))
        return self._check.checked(self._evidence, belief, self._told, look)

    def _width(self, belief: Belief) -> FloatArray:
        """Standard deviations per row: more for rows seen less, fewer when few users are left.

        A row was seen as often as the rarer of its reward and its transitions; only its reward
        matters at the last step.
        """
        visits = np.minimum(belief.gains[..., VISITS], belief.moves[..., VISITS])
        if len(visits) > 1:
            visits[-1] = belief.gains[-1, ..., VISITS]
        confidence = float(self.settings["confidence"])
        users = min(self._told, self._left)
        width: FloatArray = 2 * confidence * np.log1p(users / np.maximum(visits, 1.0))
        return width

    def _next_request(self) -> Request:
        belief, left = self._belief(), self._left
        tie = self.rng.random(self.problem.shape.visits)

        def size(belief: Belief, most: int) -> Part:
            return self._sized(belief, tie, most)

        most = sizing.most_users(self._told, left)
        least = sizing.least_users(self._told, self.problem.episodes, self._batches)
        parts = [size(belief, most)]
        if self.settings["mixing"]:
            room = most if self._plenty < SCARCE else min(least, most)
            parts = several(belief, parts[0], room, size, self._expecting)
        needed = sum(part.users for part in parts)
        fewest = self.plan.least_users
        users = sizing.rounded(min(max(needed, least, fewest), left), left)
        if left - users < max(users * sizing.ENDING, fewest):  # the last batch teaches nobody
            parts, users = [Part(self._planner.greedy(belief, tie), left)], left
        elif self.settings["mixing"] and needed < least:
            parts.append(Part(self._planner.greedy(belief, tie), users - needed))
        batch = mixed(parts, self.problem.shape.actions)
        return Request(batch.policy, users, batch.occupancy)

    def _report(self, users: float) -> sizing.Report:
        return sizing.Report(
            float(users),
            *self._noise(users),
            self.plan.visit_variance,
            self.plan.reward_visit_variance,
            self._factors,
            self._ease,
            self.plan.last_transitions,
        )

    def _expecting(self, belief: Belief, part: Part) -> Belief:
        """The belief once the part has been played as expected."""
        from discreet.learners.flow_ucb import sizing_kernels

        after = belief._replace(moves=belief.moves.copy(), gains=belief.gains.copy())
        sizing_kernels.add_expected(after, self._report(part.users), part.plan)
        return after

    def _sized(self, belief: Belief, tie: FloatArray, most: int) -> Part:
        """The optimistic plan, and how many users it needs to learn from it."""
        from discreet.learners.flow_ucb import sizing_kernels

        width, centre = self._width(belief), self._planner.centre
        plan = self._planner.optimistic(belief, width, tie)
        if not self._told:
            return Part(plan, sizing.smallest(self._shows_a_reward, most))
        charted = self._planner.charted(belief, plan)
        goal = sizing.goal(
            float((charted.occupancy * plan.bonus).sum()),
            self._planner.promised(plan),
            self.settings["shrink"],
            self._noise.growth,
        )

        def enough(users: int) -> bool:
            report = self._report(users)
            return bool(
                sizing_kernels.uncertainty_after(belief, report, charted, width, centre) <= goal
            )

        return Part(plan, sizing.smallest(enough, most))

    def _shows_a_reward(self, users: int) -> bool:
        """Whether a row that all users visit is seen above the noise of their batch."""
        needed = visits_to_see(self._noise(users), self._factors, self._planner.centre)
        return bool(users >= needed.max())

    def state(self) -> dict[str, Plain]:
        """Evidence, progress, the pending request and the state of the tie-breaker."""
        return {
            "told": self._told,
            "batches": self._batches,
            "evidence": self._evidence.to_dict(),
            "request": self._request and _plain(self._request),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: JsonObject) -> None:
        """Resume from `state`."""
        self._told, self._batches = int(state["told"]), int(state["batches"])
        self._evidence = Evidence.from_dict(state["evidence"])
        self._request = _request(state["request"]) if state["request"] else None
        self.rng.bit_generator.state = state["rng"]


def _columns(
    weight: FloatArray, visits: FloatArray, varied: FloatArray, noise: float, doubt: FloatArray
) -> FloatArray:
    """What rows add to the columns that moves and gains have in common."""
    sums = np.zeros((weight.size, COLUMNS))
    sums[:, VISITS] = weight * visits
    sums[:, SAMPLING] = weight**2 * varied
    sums[:, NOISE] = weight**2 * noise
    sums[:, DOUBT] = weight**2 * doubt
    return sums


def _plain(request: Request) -> dict[str, Plain]:
    policy = request.policy
    kind, values = (
        ("actions", policy.actions)
        if isinstance(policy, DeterministicPolicy)
        else ("probabilities", policy.probabilities)
    )
    return {
        kind: values.tolist(),
        "users": request.users,
        "occupancy": request.occupancy.tolist(),
    }


def _request(plain: JsonObject) -> Request:
    policy: DeterministicPolicy | StochasticPolicy
    if "actions" in plain:
        policy = DeterministicPolicy(np.array(plain["actions"], np.int64))
    else:
        policy = StochasticPolicy(np.array(plain["probabilities"]))
    return Request(policy, int(plain["users"]), np.array(plain["occupancy"]))


SPECS = by_name(LearnerSpec.of_batch(FlowUCB, paper="ours"))
