"""Several routes in one batch of flow-ucb, where users or batches are scarce.

Noise is paid once per batch. Where a batch is a large part of all users it holds up to three
routes, and where it has a least size, up to ten: each is sized for what it teaches, its expected
counts are added to the belief, and the next route is made of that. Their users play one stochastic
policy whose flow in the model is the mixture of the routes' flows, weighted by their users.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from discreet._types import FloatArray, JsonObject, Plain
from discreet.errors import InvalidInputError
from discreet.learners.base import Batch, FlowLearner
from discreet.learners.flow_ucb import sizing
from discreet.learners.flow_ucb.belief import Belief, believed
from discreet.learners.flow_ucb.evidence import VISITS, Evidence, Observed
from discreet.learners.flow_ucb.gate import everything_pooled, nothing_pooled, pooled_rows
from discreet.learners.flow_ucb.own_step import CHECKING, OwnStepCheck
from discreet.learners.flow_ucb.plan import Planner, Route
from discreet.learners.flow_ucb.request import Request
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
from discreet.learners.flow_ucb.visit_noise import plan_factors, visits_to_see
from discreet.learners.registry import LearnerSpec, by_name
from discreet.mdp.policies import DeterministicPolicy, StochasticPolicy
from discreet.privacy.projection.flow import released_flow
from discreet.privacy.statistics import PrivateCounts

FEW_ROUTES = 3
"""At most in a batch without a least size, where users are scarce. Inherited; measured: with 10 a
narrow way is found later."""
MANY_ROUTES = 10
"""At most in a batch that has a least size, since batches are scarce, whether users are or not.
Measured: 3, 10 and 30. With 3, a cliff of forty states was not explored within
`sizing.MOST_BATCHES`."""


class Part(NamedTuple):
    """A route, and how many users of a batch play it."""

    route: Route
    users: int


def several(
    belief: Belief,
    first: Part,
    room: int,
    most_routes: int,
    size: Callable[[Belief, int], Part],
    expect: Callable[[Belief, Part], Belief],
) -> list[Part]:
    """The first part, and more while they have room.

    Args:
        belief: before the batch.
        first: made of it.
        room: users of the batch.
        most_routes: in it.
        size: a route and its users, at most so many.
        expect: the belief once a part has been played as expected.
    """
    parts, used = [first], first.users
    while len(parts) < most_routes and used < room:
        belief = expect(belief, parts[-1])
        parts.append(size(belief, room - used))
        used += parts[-1].users
    return parts


def mixed(parts: Sequence[Part], users: int, choices: int) -> Request:
    """A batch of ``users`` whose flow in the model is the weighted mean of the parts' flows."""
    if len(parts) == 1:
        route = parts[0].route
        return Request(DeterministicPolicy(route.actions), users, route.occupancy)
    total = sum(part.users for part in parts)
    flow = np.zeros((*parts[0].route.actions.shape, choices))
    elsewhere = np.zeros_like(flow)
    for route, players in parts:
        taken = route.actions[..., None] == np.arange(choices)
        elsewhere += players / total * taken
        flow += players / total * taken * route.occupancy[..., None]
    occupancy = flow.sum(axis=-1)
    reached = occupancy > 1e-12
    share = np.where(
        reached[..., None], flow / np.where(reached, occupancy, 1.0)[..., None], elsewhere
    )
    share /= share.sum(axis=-1, keepdims=True)
    return Request(StochasticPolicy(share), users, occupancy)


# flow-ucb: optimism on batches, with everything that costs no privacy. Ours.
#
# **Privacy** is proven: every user is in exactly one batch, each batch is released once (parallel
# composition), and all else is post-processing of releases. Sizes and number of batches depend on
# released statistics only. **No regret bound is claimed.**
#
# A round:
#
# 1. *Believe* (`belief`). Steps are pooled where released counts do not contradict it (`gate`), and
#    not where a step's own counts are due (`own_step`); a problem that was declared stationary is
#    pooled throughout.
# 2. *Plan* (`plan`). Backward induction with Q = r + P·V + bonus, at most 1 + max V (a reward,
#    then the best next state); an action that was never played is worth that much. With weighted
#    visits N = sum w·n, sampling weight M = sum w²·n and noise variances F (transitions), G
# (rewards)
#    and D (visits), each sum w²·sigma²,
#
#        sd² = [M·Var_P V + F·sum_s' u(s')·(V(s') - P·V)² + (2(H-h)·M/N)²] / (N - sqrt D)²
#              + [M·r(1-r) + G + D·(r - c)² + (2M/N)²] / (N - sqrt D)²
#
#    is the variance of the estimated Q: of transitions, whose noise moves P·V only as far as V
#    differs between states (and less where the projection left no count: u(s') is 0.15 there and 1
#    where counts are above their noise), and of rewards (c = 1/2 where rewards are released as
#    C = sum of r - 1/2: R = C + N/2), each with its own weights, and with a lower-order term for
# rows
#    seen a few times.
#    Counts that are not negative look like visits even where nobody came, so only the visits above
#    their own noise are certain, and a row without certain visits counts as never played. Projected
#    noise leans one way: F holds (0.2·sum w·sigma)² besides. And it hides rare ways: up to sum of
#    w·sigma visits of a row may have led, unseen, to the best of the states in which nobody was
# seen,
#    which adds (sum w·sigma·(V(s') - P·V))² to the first bracket once there were users enough
#    (`settings.hiding`). Where reports show only some of the visits (one step per user), each visit
#    carries more variance (`BatchMechanism.visit_variance`).
#    A row of which anything is pooled errs alike at every step: standard deviations add up along a
#    route, and its bonus is width·sd. Rows that stand alone err independently: variances add up,
# and
#    the bonus is width·(sqrt(sd² + U) - sqrt U), U being the expected sum of sd² of such rows from
#    the next state on. Actions of a state are compared with width·sd of their own, since what
#    follows them is much the same.
#    ``width`` = 2·``confidence``·ln(1 + min(t, users left)/N), t the users so far (100 times as
# many
#    where every batch pays its noise anew) and N the rarer of a row's rewards and transitions:
#    caution for rows seen less, and none for the sake of users who will not come. Late, actions
# that
#    are almost as good as the best have up to twice that width (`settings.close_caution`): to look
#    again costs every user little, and what is lost by a wrong choice is lost by all who come.
# 3. *Size the batch by what it can teach* (`sizing`). Where users are scarce, or a batch has room,
# it
#    holds several routes (`mixture`).
# 4. *Release* transitions and rewards of the played actions only; visits follow from the flow, and
#    transitions of the last step teach nothing (L2 = 3.81 at H = 6, instead of sqrt(6H) = 6 for
#    three plain statistics).
# 5. *Project* the transitions onto consistent flows (`discreet.privacy.projection.flow`).
# 6. *Accumulate* (`evidence`) with credit w = m/(m + sigma²/``ease``) per (h, s, a), where m is the
#    number of visits the model predicted before the batch: a batch that hardly visits a row adds
#    hardly any noise to it.
#
# The last batch teaches nobody: it plays the greedy policy of the model.


class FlowUCB(FlowLearner[FlowSettings]):
    """Optimism on flow-consistent batches."""

    name = "flow-ucb"
    summary = "optimism on flow-consistent batches: the practical private learner"
    settings_type = FlowSettings

    def begin(self) -> None:
        """Nothing is known; the usual confidence follows from the users and the noise."""
        problem, plan = self.problem, self.plan
        if problem.stationary and self.chosen.pooling == "never":
            raise InvalidInputError(
                "Expected pooling='gated' where stationary=True declares that all steps are "
                "alike, got pooling='never'; leave one of the two out."
            )
        self._noise = sizing.Noise(plan)
        self._plenty = users_per_unit(problem, self._noise(problem.episodes)[0])
        self.settings["stationary"] = problem.stationary
        if self.chosen.confidence is None:
            usual = usual_confidence(self._plenty)
            self.settings["confidence"] = usual * AHEAD_CONFIDENCE**self._noise.renewed
        self._ahead = AHEAD**self._noise.renewed
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
        rows = np.nonzero(counts.support)
        chosen = request.policy.distribution(self.problem.shape)[rows]
        flow, visits = self._flow(counts, chosen)
        rewards = np.asarray(counts.row_rewards) + self._planner.centre * visits
        expected = counts.users * request.occupancy[rows[:2]] * chosen
        batch = Observed(rows, flow, visits, rewards, expected)
        # Nobody begins outside the declared starts. With noise, rows there have no credit; without
        # noise every row has, and this is what keeps them out.
        begun = (rows[0] > 0) | self.problem.start[rows[1]]
        noise = (counts.noise_variance[name] for name in self.statistics)
        terms = self._terms(counts.users, *noise, last_transitions=counts.last_transitions)
        self._evidence.add(batch if begun.all() else batch.only(begun), terms)
        self._told += counts.users
        self._batches += 1
        self._request = None

    def _flow(self, counts: PrivateCounts, chosen: FloatArray) -> tuple[FloatArray, FloatArray]:
        return released_flow(counts, self.problem.start, chosen)

    @property
    def _ease(self) -> float:
        """``ease`` is for visits that are all reported; thinner reports vary more per visit."""
        return float(self.settings["ease"] * (1 + self.plan.visit_variance))

    @property
    def _hiding(self) -> float:
        """Standard deviations of noise that may hide a way, by now."""
        return hiding(self._plenty_so_far)

    @property
    def _close_caution(self) -> float:
        """How much wider close calls are; not at all where coming back costs no noise anew."""
        return close_caution(self._plenty_so_far) * self._noise.renewed

    @property
    def _plenty_so_far(self) -> float:
        """`users_per_unit` of the users so far, by the noise of a batch of all."""
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

    def _greedy(self, tie: FloatArray) -> Route:
        """For users who are not sent to find out: what other steps say is what is known."""
        return self._planner.greedy(self._belief(exploring=False), tie)

    def _belief(self, *, exploring: bool = True) -> Belief:
        """The evidence, pooled where the gate and the own-step check allow it.

        While ``exploring``, what has to be checked counts as never seen.
        """
        evidence = self._evidence
        if self.problem.stationary:
            return believed(evidence, everything_pooled(evidence))
        if self.settings["pooling"] == "never" or not self._told:
            return believed(evidence, nothing_pooled(evidence))
        doubted = self._planner.doubted
        belief = believed(evidence, pooled_rows(evidence, self._told, doubted, self._hiding))
        return self._checked(belief, exploring=exploring)

    def _checked(self, belief: Belief, *, exploring: bool) -> Belief:
        noise = self._noise(max(1.0, CHECKING * self._told))
        return self._check.checked(self._evidence, belief, self._told, noise, exploring=exploring)

    def _width(self, belief: Belief) -> FloatArray:
        """Standard deviations per row: more for rows seen less, fewer when few users are left."""
        confidence = float(self.settings["confidence"])
        users = min(self._ahead * self._told, self._left)
        width: FloatArray = 2 * confidence * np.log1p(users / np.maximum(self._seen(belief), 1.0))
        more = self._close_caution
        if more:
            width *= 1 + more * self._planner.closeness(belief, CLOSE)
        return width

    def _seen(self, belief: Belief) -> FloatArray:
        """Visits of a row: the rarer of those that show its reward and its transitions.

        At the last step only its reward matters.
        """
        visits: FloatArray = np.minimum(belief.gains[..., VISITS], belief.moves[..., VISITS])
        if len(visits) > 1:
            visits[-1] = belief.gains[-1, ..., VISITS]
        return visits

    def _next_request(self) -> Request:
        belief, left = self._belief(), self._left
        tie = self.rng.random(self.problem.shape.visits)

        def size(belief: Belief, most: int) -> Part:
            return self._sized(belief, tie, most)

        most = sizing.most_users(self._told, left)
        least = sizing.min_users(self._told, self.problem.episodes, self._batches)
        parts = [size(belief, most)]
        if self.settings["mixing"]:
            room = most if self._scarce else min(least, most)
            most_routes = MANY_ROUTES if least > 1 else FEW_ROUTES
            parts = several(belief, parts[0], room, most_routes, size, self._expecting)
        needed = sum(part.users for part in parts)
        min_users = self.plan.min_users
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
            self.plan.visit_variance,
            self.plan.reward_visit_variance,
            self._factors,
            self._ease,
            last_transitions,
        )

    def _next_terms(self, users: float) -> sizing.ReleaseTerms:
        noise = self._noise(users)
        return self._terms(users, *noise, last_transitions=self.plan.last_transitions)

    def _expecting(self, belief: Belief, part: Part) -> Belief:
        """The belief once the part has been played as expected."""
        from discreet.learners.flow_ucb import sizing_kernels

        after = belief._replace(moves=belief.moves.copy(), gains=belief.gains.copy())
        sizing_kernels.add_expected(after, self._next_terms(part.users), part.route)
        return after

    def _sized(self, belief: Belief, tie: FloatArray, most: int) -> Part:
        """The optimistic route, and how many users it needs to learn from it."""
        from discreet.learners.flow_ucb import sizing_kernels

        width, planner = self._width(belief), self._planner
        route = planner.optimistic(belief, width, tie, self._hiding)
        if not self._told:
            return Part(route, sizing.smallest(self._shows_a_reward, most))
        charted = planner.charted(belief, route)
        goal = sizing.goal(
            float((charted.occupancy * route.bonus).sum()),
            planner.value(route),
            self.settings["shrink"],
            self._noise.growth,
        )

        def enough(users: int) -> bool:
            left = sizing_kernels.uncertainty_after(
                belief, self._next_terms(users), charted, width, planner.centre, planner.doubted
            )
            return bool(left <= goal)

        return Part(route, sizing.smallest(enough, most))

    def _shows_a_reward(self, users: int) -> bool:
        """Whether a row that all users visit is seen above the noise of their batch."""
        needed = visits_to_see(self._noise(users), self._factors, self._planner.doubted)
        return bool(users >= needed.max())

    def state(self) -> dict[str, Plain]:
        """Evidence, progress, the pending request and the state of the tie-breaker."""
        return {
            "told": self._told,
            "batches": self._batches,
            "evidence": self._evidence.to_dict(),
            "request": self._request and self._request.to_dict(),
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: JsonObject) -> None:
        self._told, self._batches = int(state["told"]), int(state["batches"])
        self._evidence = Evidence.from_dict(state["evidence"])
        self._request = Request.from_dict(state["request"]) if state["request"] else None
        self.rng.bit_generator.state = state["rng"]


SPECS = by_name(LearnerSpec.of_batch(FlowUCB, paper="ours"))
