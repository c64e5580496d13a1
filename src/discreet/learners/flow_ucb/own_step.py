"""The own-step check: what is pooled is not believed where checking is cheap.

A gate can only contradict what was seen. If a step pays more, or leads elsewhere, than the same
(s, a) at other steps, and nobody takes the action there because pooled counts say that it is not
worth it, pooling would hide that for ever. So a state is *due* at a step once checking costs a
vanishing share of the users so far: to see its reward above the noise takes

    need = max(2·sqrt(sigma_r² + sigma_t²·factor_h·max(c, 1 - c)²), 2)   visits

(`visits_to_see`; c = 1/2 where rewards are centred, which makes that factor_h/4), and it is due if
need <= 3e-3·t·(its occupancy under the greedy route), or need·V <= 3e-3·t·rho, where rho > 0.01 is
the largest chance of being there under any policy, by chances that stand out of their noise, and V
the greedy value, all that checking can cost. Where it is due,

- a pooled reward counts as never seen until this step's own is known (its noise is below half of
  its visits, and it was visited twice): the reward's own sums with no visits, and a batch that
  makes it known (`sizing`); those who do not explore take the pooled one for what it is;
- an own reward that exceeds the pooled one by its standard deviation is used instead. On the
  greedy route, once checking is ten times cheaper than it has to be (10·need <=
  3e-3·t·occupancy), any excess is enough while the own reward is hardly known, and half a standard
  deviation once it is known to 0.2;
- once the own reward is known, own transitions that lead to more than the pooled ones by two
  standard deviations are used instead, and the own reward with them.

The largest chances take H²·S³·A/2 multiplications: above `CHANCE_WORK` only the greedy route's
states can become due.
"""

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import VISITS, Evidence
from discreet.learners.flow_ucb.plan import Planner, Route
from discreet.learners.flow_ucb.visit_noise import TIGHT, visits_to_see

CHECKING = 3e-3
"""Share of the users so far that checking may cost, along the greedy route and off it. Inherited
for the route; off it 1e-3 was, and three times that costs 0.96 to 1.00 of its regret. Before checks
ended with one batch, three times as many cost four times the regret on chains."""
LEAST_CHANCE = 0.01
"""Where fewer can come than this share of all users, nobody is sent. Inherited."""
SURPRISE = 1.0
"""Standard deviations by which an own reward has to exceed the pooled one. Inherited; measured:
alone, it misses a single odd reward now and then, hence `LATER`."""
LATER = 10.0
"""On the greedy route any excess of an own reward is followed up once checking is so much cheaper
(of one that is known well: `own_step_kernels.SHARP_SURPRISE`).
Measured, with RiverSwim in view."""
CHANCE_WORK = 5e7
"""Multiplications: a limit of time, not of statistics."""

UNCHECKED, OWN_GAINS, OWN_ROW = 1, 2, 3
"""Verdicts: the pooled reward counts as never seen; the own reward; own reward and transitions."""


class OwnStepCheck:
    """Applies the check to beliefs that pool steps."""

    def __init__(self, planner: Planner, factors: FloatArray) -> None:
        self.planner = planner
        self.factors = factors

    def checked(
        self,
        evidence: Evidence,
        belief: Belief,
        users: int,
        noise: tuple[float, float],
        *,
        exploring: bool,
    ) -> Belief:
        """The belief, with own-step evidence where it is due.

        Args:
            evidence: of every step.
            belief: which pools some of it.
            users: who told it.
            noise: of a batch that checks.
            exploring: pooled rewards that have to be checked count as never seen; to users who are
                not sent to find out, they are what is known.
        """
        if not users or not (belief.pooled_gains.any() or belief.pooled_moves.any()):
            return belief
        from discreet.learners.flow_ucb import own_step_kernels

        route = self.planner.greedy(belief, np.zeros(self.planner.shape.visits))
        surprise = self._surprise(belief, route, users, noise)
        verdict = np.zeros(evidence.number.shape, np.int64)
        own_step_kernels.examine(
            evidence, belief, surprise, route.values, self.planner.doubted, TIGHT, verdict
        )
        if not exploring:
            verdict[verdict == UNCHECKED] = 0
        return _with_own(evidence, belief, verdict)

    def _surprise(
        self, belief: Belief, route: Route, users: int, noise: tuple[float, float]
    ) -> FloatArray:
        """``[H, S]``: the excess of an own reward that is followed up; infinite where not due."""
        need = visits_to_see(noise, self.factors, self.planner.doubted)[:, None]
        cheap = CHECKING * users * route.occupancy
        due = need <= cheap
        if self.planner.chance_work <= CHANCE_WORK:
            chances = self.planner.largest_chances(belief)
            cost = need * self.planner.value(route)
            due |= (cost <= CHECKING * users * chances) & (chances > LEAST_CHANCE)
        return np.where(LATER * need <= cheap, 0.0, np.where(due, SURPRISE, np.inf))


def _with_own(evidence: Evidence, belief: Belief, verdict: IntArray) -> Belief:
    if not verdict.any():
        return belief
    unchecked, own, rows = verdict == UNCHECKED, verdict >= OWN_GAINS, verdict == OWN_ROW
    gains = np.where((unchecked | own)[..., None], evidence.gains, belief.gains)
    gains[unchecked, VISITS] = 0.0
    belief = belief._replace(gains=gains, pooled_gains=belief.pooled_gains & ~(unchecked | own))
    return _with_own_rows(evidence, belief, rows) if rows.any() else belief


def _with_own_rows(evidence: Evidence, belief: Belief, rows: BoolArray) -> Belief:
    """The belief with rows of some steps' own transitions."""
    from discreet.learners.flow_ucb import belief_kernels

    own = np.empty((int(rows.sum()), belief.probabilities.shape[1]))
    for i, (place, visits) in enumerate(
        zip(evidence.number[rows], evidence.moves[rows, VISITS], strict=True)
    ):
        belief_kernels.row_model(evidence.transitions[place], visits, own[i])
    number = belief.number.copy()
    number[rows] = len(belief.probabilities) + np.arange(len(own))
    return belief._replace(
        number=number,
        probabilities=np.concatenate([belief.probabilities, own]),
        moves=np.where(rows[..., None], evidence.moves, belief.moves),
        pooled_moves=belief.pooled_moves & ~rows,
    )
