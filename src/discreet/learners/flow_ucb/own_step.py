"""The own-step check: what steps share is not believed where looking is cheap.

A gate can only contradict what was seen. If a step pays more, or leads elsewhere, than the same
(s, a) at other steps, and nobody takes the action there because pooled counts say that it is not
worth it, pooling would hide that for ever. So a state is *due* at a step once a look costs a
vanishing share of the users so far: to see its reward above the noise takes

    need = 2·sqrt(sigma_r² + sigma_t²·factor_h/4)   visits,

and it is due if need <= 3e-3·t·(its occupancy under the greedy plan), or
need·V <= 3e-3·t·rho, where rho > 0.01 is the largest chance of being there under any policy, by
chances that stand out of their noise, and V the greedy value, all that a look can cost. Where it is
due,

- a pooled reward counts as never seen until this step's own is known (its noise is below half of
  its visits): the reward's own sums with no visits, and a batch that makes it known (`sizing`);
- an own reward that exceeds the pooled one by its standard deviation is used instead;
- own transitions that lead to more than the pooled ones, by two standard deviations, likewise.

The largest chances take H²·S³·A/2 multiplications: above `REACH_WORK` only the greedy plan's states
can become due.
"""

import numpy as np

from discreet._types import BoolArray, FloatArray, IntArray
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import VISITS, Evidence
from discreet.learners.flow_ucb.plan import Plan, Planner
from discreet.learners.flow_ucb.visit_noise import TIGHT, visits_to_see

LOOK = 3e-3
"""Share of the users so far that a look may cost."""
LEAST_REACH = 0.01
SURPRISE = 1.0
LATER = 10.0
"""On the greedy plan any excess of an own reward is followed up once looks are so much cheaper."""
REACH_WORK = 5e7

HIDDEN, OWN_GAINS, OWN_ROW = 1, 2, 3


class OwnStepCheck:
    """Applies the check to beliefs that pool steps."""

    def __init__(self, planner: Planner, factors: FloatArray) -> None:
        self.planner = planner
        self.factors = factors
        self.doubted = max(planner.centre, 1 - planner.centre) ** 2

    def checked(
        self, evidence: Evidence, belief: Belief, users: int, noise: tuple[float, float]
    ) -> Belief:
        """The belief, with own-step evidence where it is due; ``noise`` of a batch that looks."""
        if not users or not (belief.pooled_gains.any() or belief.pooled_moves.any()):
            return belief
        from discreet.learners.flow_ucb import own_step_kernels

        plan = self.planner.greedy(belief, np.zeros(self.planner.shape.visits))
        surprise = self._surprise(belief, plan, users, noise)
        verdict = np.zeros(evidence.number.shape, np.int64)
        own_step_kernels.examine(
            evidence, belief, surprise, plan.values, self.doubted, TIGHT, verdict
        )
        return _with_own(evidence, belief, verdict)

    def _surprise(
        self, belief: Belief, plan: Plan, users: int, noise: tuple[float, float]
    ) -> FloatArray:
        """``[H, S]``: the excess of an own reward that is followed up; infinite where not due."""
        need = visits_to_see(noise, self.factors, self.planner.centre)[:, None]
        cheap = LOOK * users * plan.occupancy
        due = need <= cheap
        if self.planner.reach_work <= REACH_WORK:
            reach = self.planner.reach(belief)
            cost = need * self.planner.promised(plan)
            due |= (cost <= LOOK * users * reach) & (reach > LEAST_REACH)
        return np.where(LATER * need <= cheap, 0.0, np.where(due, SURPRISE, np.inf))


def _with_own(evidence: Evidence, belief: Belief, verdict: IntArray) -> Belief:
    """The belief after the verdicts."""
    if not verdict.any():
        return belief
    hidden, own, rows = verdict == HIDDEN, verdict >= OWN_GAINS, verdict == OWN_ROW
    gains = np.where((hidden | own)[..., None], evidence.gains, belief.gains)
    gains[hidden, VISITS] = 0.0
    belief = belief._replace(gains=gains, pooled_gains=belief.pooled_gains & ~(hidden | own))
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
