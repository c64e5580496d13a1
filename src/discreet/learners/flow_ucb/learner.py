"""flow-ucb: optimism on batches, with everything that costs no privacy. Ours.

**Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
composition), and all else is post-processing of releases. Sizes and number of batches depend on
released statistics only. **No regret bound is claimed.** A round:

1. *Estimate* (`learners.estimate`, `learners.pooling`). Steps are pooled where released counts do
   not contradict it, and not where a step's own counts are due (`own_step`); a problem that was
   declared stationary is pooled throughout.
2. *Plan* (`planning`). Backward induction with Q = r + P·V + bonus, at most 1 + max V (a reward,
   then the best next state); an action that was never played is worth that much. The variance sd²
   of the estimated Q is that of `learners.estimate`, for transitions and rewards each with weights
   and lower-order term (reach 2(H-h) and 2) of its own, over (N - sqrt D)². The noise of
   transitions counts less where the projection left no count: 0.15 of it there, and all where
   counts are above their noise. Counts that are not negative look like visits even where nobody
   came, so only the visits above their own noise are certain, and a row without certain visits
   counts as never played. Projected noise is biased: F holds (0.2·sum w·sigma)² besides. And it
   hides rare ways: up to sum of w·sigma visits of a row may have led, unseen, to the best of the
   states in which nobody was seen, which adds (sum w·sigma·(V(s') - P·V))² once there were users
   enough (`settings.hiding`). Where reports show only some of the visits (one step per user), each
   visit carries more variance (`BatchMechanism.visit_variance`).
   A row of which anything is pooled errs alike at every step: standard deviations add up along a
   policy, and its bonus is width·sd. Rows that stand alone err independently: variances add up, and
   the bonus is width·(sqrt(sd² + U) - sqrt U), U being the expected sum of sd² of such rows from
   the next state on. Actions of a state are compared with width·sd of their own, since what follows
   them is much the same.
   ``width`` = 2·``confidence``·ln(1 + min(t, users left)/N), t the users so far (100 times as many
   where every batch pays its noise anew) and N the rarer of a row's rewards and transitions:
   caution for rows seen less, and none for the sake of users who will not come. Late, actions that
   are almost as good as the best have up to twice that width (`settings.close_caution`): to look
   again costs every user little, and what is lost by a wrong choice is lost by all who come.
3. *Size the batch by what it can teach* (`sizing`). Noise is paid once per batch. Where a batch is
   a large part of all users it holds up to three candidate policies, and where it has a least size,
   up to ten: each is sized for what it teaches, its expected counts are added to the estimate, and
   the next one is made of that. Their users play one stochastic policy whose flow in the model is
   the mixture of the candidates' flows, weighted by their users.
4. *Release* transitions and rewards of the actions in the policy's support only; rewards tell the
   visits, and transitions of the last step teach nothing.
5. *Project* the transitions onto consistent flows (`discreet.privacy.projection.flow`).
6. *Accumulate* with the weight w = m/(m + sigma²/``ease``) per (h, s, a), where m is the number of
   visits the model predicted before the batch: a batch that hardly visits a row adds hardly any
   noise to it.

The last batch teaches nobody: it plays the greedy policy of the model.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, IntArray, JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, FlowLearner, Problem
from discreet.learners.estimate import (
    VISITS,
    CountSums,
    ModelEstimate,
    ReleasedRows,
    visit_noise_factors,
    weight_of,
)
from discreet.learners.flow_ucb import sizing
from discreet.learners.flow_ucb.own_step import CHECKING, OwnStepCheck, visits_to_see
from discreet.learners.flow_ucb.planning import CandidatePolicy, Planner
from discreet.learners.flow_ucb.settings import (
    AHEAD,
    AHEAD_CONFIDENCE,
    CLOSE,
    SCARCE,
    FlowSettings,
    close_caution,
    hiding,
    users_per_unit,
    usual_confidence,
)
from discreet.learners.pooling import Pooled, estimated, pooled_rows
from discreet.learners.registry import LearnerSpec, by_name
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.projection.flow import released_flow
from discreet.privacy.statistics import PrivateCounts

FEW_CANDIDATES = 3
"""At most in a batch without a least size, where users are scarce. Inherited; measured: with 10 a
narrow way is found later."""
MANY_CANDIDATES = 10
"""At most in a batch that has a least size, since batches are scarce, whether users are or not.
Measured: 3, 10 and 30. With 3, a cliff of forty states was not explored within
`sizing.MOST_BATCHES`."""


class Request(NamedTuple):
    """A policy for some users, with how likely the model is in each state ``[H, S]``."""

    policy: DeterministicPolicy | StochasticPolicy
    users: int
    occupancy: FloatArray

    def to_dict(self) -> dict[str, Plain]:
        policy = self.policy
        kind, values = (
            ("actions", policy.actions)
            if isinstance(policy, DeterministicPolicy)
            else ("probabilities", policy.probabilities)
        )
        return {
            kind: values.tolist(),
            "users": self.users,
            "occupancy": self.occupancy.tolist(),
        }

    @classmethod
    def from_dict(cls, data: JsonObject) -> "Request":
        policy: DeterministicPolicy | StochasticPolicy
        if "actions" in data:
            policy = DeterministicPolicy(np.array(data["actions"], np.int64))
        else:
            policy = StochasticPolicy(np.array(data["probabilities"]))
        return cls(policy, int(data["users"]), np.array(data["occupancy"]))


class Part(NamedTuple):
    """A candidate policy, and how many users of a batch play it."""

    candidate: CandidatePolicy
    users: int


def several(
    model: ModelEstimate,
    first: Part,
    room: int,
    most_candidates: int,
    size: Callable[[ModelEstimate, int], Part],
    expect: Callable[[ModelEstimate, Part], ModelEstimate],
) -> list[Part]:
    """The first part, and more while they have room."""
    parts, used = [first], first.users
    while len(parts) < most_candidates and used < room:
        model = expect(model, parts[-1])
        parts.append(size(model, room - used))
        used += parts[-1].users
    return parts


def mixed(parts: Sequence[Part], users: int, choices: int) -> Request:
    """A batch of ``users`` whose flow in the model is the weighted mean of the parts' flows."""
    if len(parts) == 1:
        candidate = parts[0].candidate
        return Request(DeterministicPolicy(candidate.actions), users, candidate.occupancy)
    total = sum(part.users for part in parts)
    flow = np.zeros((*parts[0].candidate.actions.shape, choices))
    elsewhere = np.zeros_like(flow)
    for candidate, players in parts:
        taken = candidate.actions[..., None] == np.arange(choices)
        elsewhere += players / total * taken
        flow += players / total * taken * candidate.occupancy[..., None]
    occupancy = flow.sum(axis=-1)
    reached = occupancy > 1e-12
    share = np.where(
        reached[..., None], flow / np.where(reached, occupancy, 1.0)[..., None], elsewhere
    )
    share /= share.sum(axis=-1, keepdims=True)
    return Request(StochasticPolicy(share), users, occupancy)


def accumulate(
    sums: CountSums,
    rows: tuple[IntArray, ...],
    flow: FloatArray,
    visits: FloatArray,
    rewards: FloatArray,
    expected: FloatArray,
    terms: sizing.ReleaseTerms,
) -> None:
    """Add a projected batch with each row's weight; `sizing.expected_row` predicts the next one's.

    Reports that show only a part of the visits add variance to every visit; half of it is left in a
    state's total, which the flow measures twice: coming in and going out. Variances are of as many
    visits as were ``expected``, if fewer were seen: noise made them fewer.
    """
    weight = weight_of(expected, terms.noise, terms.ease)
    if not terms.last_transitions:
        weight = np.where(rows[0] == len(terms.factors) - 1, 0.0, weight)
    seen = np.maximum(visits, expected)
    batch = ReleasedRows(
        rows,
        flow,
        visits,
        rewards,
        sampling=seen * (1 + terms.per_visit),
        reward_sampling=seen,
        noise=terms.noise,
        reward_noise=terms.reward_noise + seen * terms.reward_per_visit,
        visit_variance=terms.noise * terms.factors[rows[0]] + terms.per_visit * seen / 2,
    )
    sums.add(batch, weight, weight_of(expected, terms.reward_noise, terms.ease))


def mechanism_factors(problem: Problem, mechanism: BatchMechanism) -> FloatArray:
    """`visit_noise_factors` of what this mechanism releases."""
    noise = mechanism.noise_variance(mechanism.min_users)
    return visit_noise_factors(
        problem.shape.states,
        problem.shape.horizon,
        int(problem.start.sum()),
        last_transitions=mechanism.last_transitions,
        look=noise["transitions"] / noise["visits"] if noise.get("visits") else 0.0,
    )


class FlowUCB(FlowLearner[FlowSettings]):
    """Optimism on flow-consistent batches."""

    name = "flow-ucb"
    summary = "optimism on flow-consistent batches: the practical private learner"
    settings_type = FlowSettings

    def begin(self) -> None:
        """Nothing is known; the usual confidence follows from the users and the noise."""
        problem, mechanism = self.problem, self.mechanism
        if problem.stationary and self.chosen.pooling == "never":
            raise InvalidInputError(
                "Expected pooling='gated' where stationary=True declares that all steps are "
                "alike, got pooling='never'; leave one of the two out."
            )
        self._noise = sizing.Noise(mechanism)
        self._plenty = users_per_unit(problem, self._noise(problem.episodes)[0])
        self.settings["stationary"] = problem.stationary
        if self.chosen.confidence is None:
            usual = usual_confidence(self._plenty)
            self.settings["confidence"] = usual * AHEAD_CONFIDENCE**self._noise.renewed
        self._ahead = AHEAD**self._noise.renewed
        shape = problem.shape
        layers = 1 if problem.stationary else shape.horizon
        self._sums = CountSums.empty(layers, shape.states, shape.actions)
        self._factors = mechanism_factors(problem, mechanism)
        initial = problem.start / problem.start.sum()
        self._planner = Planner(shape, initial, 0.5 if mechanism.centred else 0.0)
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
        """Project onto consistent flows, then add with each row's weight."""
        request = self._request or self._next_request()
        rows = np.nonzero(counts.support)
        chosen = request.policy.distribution(self.problem.shape)[rows]
        flow, visits = released_flow(counts, self.problem.start, chosen)
        rewards = np.asarray(counts.row_rewards) + self._planner.centre * visits
        expected = counts.users * request.occupancy[rows[:2]] * chosen
        # Nobody begins outside the declared starts. With noise, rows there have no weight; without
        # noise every row has, and this is what keeps them out.
        begun = (rows[0] > 0) | self.problem.start[rows[1]]
        if not begun.all():
            rows = tuple(axis[begun] for axis in rows)
            flow, visits, rewards = flow[begun], visits[begun], rewards[begun]
            expected = expected[begun]
        noise = (counts.noise_variance[name] for name in self.statistics)
        terms = self._terms(counts.users, *noise, last_transitions=counts.last_transitions)
        accumulate(self._sums, rows, flow, visits, rewards, expected, terms)
        self._told += counts.users
        self._batches += 1
        self._request = None

    @property
    def _ease(self) -> float:
        return float(self.settings["ease"] * (1 + self.mechanism.visit_variance))

    @property
    def _hiding(self) -> float:
        return hiding(self._plenty_so_far)

    @property
    def _close_caution(self) -> float:
        return close_caution(self._plenty_so_far) * self._noise.renewed

    @property
    def _plenty_so_far(self) -> float:
        return self._plenty * self._told / self.problem.episodes

    @property
    def _scarce(self) -> bool:
        return self._plenty < SCARCE

    @property
    def _left(self) -> int:
        return self.problem.episodes - self._told

    def greedy(self) -> DeterministicPolicy:
        """The best policy of the model; actions that are not known are shunned."""
        return DeterministicPolicy(self._greedy(np.zeros(self.problem.shape.visits)).actions)

    def _greedy(self, tie: FloatArray) -> CandidatePolicy:
        return self._planner.greedy(self._model(exploring=False), tie)

    def _model(self, *, exploring: bool = True) -> ModelEstimate:
        """The evidence, pooled where the gate and the own-step check allow it.

        While ``exploring``, what has to be checked counts as never seen.
        """
        sums = self._sums
        if self.problem.stationary:
            return estimated(sums, Pooled.all_or_none(sums, True))
        if self.settings["pooling"] == "never" or not self._told:
            return estimated(sums, Pooled.all_or_none(sums, False))
        pooled = pooled_rows(sums, self._told, self._planner.reward_share, self._hiding)
        return self._checked(estimated(sums, pooled), exploring=exploring)

    def _checked(self, model: ModelEstimate, *, exploring: bool) -> ModelEstimate:
        noise = self._noise(max(1.0, CHECKING * self._told))
        return self._check.checked(self._sums, model, self._told, noise, exploring=exploring)

    def _width(self, model: ModelEstimate) -> FloatArray:
        confidence = float(self.settings["confidence"])
        users = min(self._ahead * self._told, self._left)
        width: FloatArray = 2 * confidence * np.log1p(users / np.maximum(self._seen(model), 1.0))
        more = self._close_caution
        if more:
            width *= 1 + more * self._planner.closeness(model, CLOSE)
        return width

    def _seen(self, model: ModelEstimate) -> FloatArray:
        """Visits of a row: the rarer of those that show its reward and its transitions.

        At the last step only its reward matters.
        """
        visits: FloatArray = np.minimum(
            model.reward_sums[..., VISITS], model.transition_sums[..., VISITS]
        )
        if len(visits) > 1:
            visits[-1] = model.reward_sums[-1, ..., VISITS]
        return visits

    def _next_request(self) -> Request:
        model, left = self._model(), self._left
        tie = self.rng.random(self.problem.shape.visits)

        def size(model: ModelEstimate, most: int) -> Part:
            return self._sized(model, tie, most)

        most = sizing.most_users(self._told, left)
        least = sizing.min_users(self._told, self.problem.episodes, self._batches)
        parts = [size(model, most)]
        if self.settings["mixing"]:
            room = most if self._scarce else min(least, most)
            most_candidates = MANY_CANDIDATES if least > 1 else FEW_CANDIDATES
            parts = several(model, parts[0], room, most_candidates, size, self._expecting)
        needed = sum(part.users for part in parts)
        min_users = self.mechanism.min_users
        users = sizing.rounded(min(max(needed, least, min_users), left), left)
        if left - users < max(users * sizing.ENDING, min_users):  # the last batch teaches nobody
            parts, users = [Part(self._greedy(tie), left)], left
        elif self.settings["mixing"] and needed < least:
            parts.append(Part(self._greedy(tie), users - needed))
        return mixed(parts, users, self.problem.shape.actions)

    def _terms(
        self, users: float, noise: float, reward_noise: float, *, last_transitions: bool
    ) -> sizing.ReleaseTerms:
        return sizing.ReleaseTerms(
            float(users),
            noise,
            reward_noise,
            self.mechanism.visit_variance,
            self.mechanism.reward_visit_variance,
            self._factors,
            self._ease,
            last_transitions,
        )

    def _next_terms(self, users: float) -> sizing.ReleaseTerms:
        noise = self._noise(users)
        return self._terms(users, *noise, last_transitions=self.mechanism.last_transitions)

    def _expecting(self, model: ModelEstimate, part: Part) -> ModelEstimate:
        after = model._replace(
            transition_sums=model.transition_sums.copy(), reward_sums=model.reward_sums.copy()
        )
        sizing.add_expected(after, self._next_terms(part.users), part.candidate)
        return after

    def _sized(self, model: ModelEstimate, tie: FloatArray, most: int) -> Part:
        width, planner = self._width(model), self._planner
        candidate = planner.optimistic(model, width, tie, self._hiding)
        if not self._told:
            return Part(candidate, sizing.smallest(self._shows_a_reward, most))
        reachable = planner.reachable(model, candidate)
        goal = sizing.goal(
            float((reachable.occupancy * candidate.bonus).sum()),
            planner.value(candidate),
            self.settings["shrink"],
            self._noise.growth,
        )

        def enough(users: int) -> bool:
            left = sizing.uncertainty_after(
                model,
                self._next_terms(users),
                reachable,
                width,
                planner.centre,
                planner.reward_share,
            )
            return bool(left <= goal)

        return Part(candidate, sizing.smallest(enough, most))

    def _shows_a_reward(self, users: int) -> bool:
        needed = visits_to_see(self._noise(users), self._factors, self._planner.reward_share)
        return bool(users >= needed.max())

    def state(self) -> dict[str, Plain]:
        """Evidence, progress, the pending request and the state of the tie-breaker."""
        return {
            "told": self._told,
            "batches": self._batches,
            "evidence": self._sums.to_dict(),
            "request": self._request and self._request.to_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: JsonObject) -> None:
        self._told, self._batches = int(state["told"]), int(state["batches"])
        self._sums = CountSums.from_dict(state["evidence"])
        self._request = Request.from_dict(state["request"]) if state["request"] else None
        self.rng.bit_generator.state = state["rng"]


SPECS = by_name(LearnerSpec.of_batch(FlowUCB, paper="ours"))
