"""The first flow-ucb, kept to be compared with: its rules, its constants, its own mechanisms.

Importing ``benchmarks.flow_ucb_first`` registers two learners for this process:

* ``flow-ucb-first``: as it was when its numbers were first reported. Central: Gaussian noise on
  plain sums of rewards and on the transitions of every step (2,848 and 4,597 on RiverSwim S=4, H=6
  at K = 2e5 and 2e8); shuffle: ``bits`` (2,889 and 4,475); local: ``one-step``.
* ``flow-ucb-first-centred``: the same rules on what trust models release by default since then
  (central: centred rewards, no last transitions; shuffle: ``classes``). What it gains is the
  mechanism's, not the learner's.

A mechanism that the caller names is used as it is, by both. Of the library they use what every
learner does (releases, the projection onto flows, the framework), and of today's flow-ucb formulas
with one right value, none of its rules (`sizing`, `kernels`).
"""

from dataclasses import replace

from benchmarks.flow_ucb_first.learner import FlowUCB
from discreet._seeds import RunSeeds
from discreet.learners.learn import learn_in_batches, public_facts
from discreet.learners.registry import LearnerSpec, register
from discreet.learners.result import Result
from discreet.mdp.shape import Shape
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.mechanisms.one_shot import GaussianBatch
from discreet.privacy.plans import BatchPlan
from discreet.privacy.sensitivity import Form
from discreet.privacy.trust import Central, TrustModel

OWN_MECHANISMS = {"shuffle": "bits", "local": "one-step"}
"""What the trust models meant by "auto" at the time."""


class PlainGaussianBatch(GaussianBatch):
    """Noise on plain sums: rewards r, not r - 1/2, and the transitions of every step."""

    @classmethod
    def form(cls, shape: Shape, statistics: tuple[str, ...], *, last_transitions: bool) -> Form:
        """Never centred."""
        return Form()


class FirstFlowUCB(FlowUCB):
    """Asks for the transitions of the last step too."""

    last_transitions = True


def own_plan(trust: TrustModel, shape: Shape) -> BatchPlan:
    """The release that the first learner was told of."""
    statistics = FirstFlowUCB.statistics
    if isinstance(trust, Central) and trust.mechanism == "auto" and trust.delta > 0:
        return PlainGaussianBatch.calibrate(trust, shape, statistics=statistics)
    own = OWN_MECHANISMS.get(trust.name)
    if own and trust.mechanism == "auto":
        trust = replace(trust, mechanism=own)
    return trust.calibrate(shape, rhythm="batch", statistics=statistics)


def run_first(
    mdp: TabularMDP,
    trust: TrustModel,
    episodes: int,
    seeds: RunSeeds,
    *,
    stationary: bool = False,
    **settings,
) -> Result:
    """A whole run of `FirstFlowUCB` on its own mechanism."""
    problem, plan = public_facts(mdp, episodes, stationary=stationary), own_plan(trust, mdp.shape)
    learner = FirstFlowUCB(problem, plan, seeds.generator("policy"), **settings)
    return learn_in_batches("flow-ucb-first", mdp, learner, seeds)


def _spec(name: str, summary: str, **how) -> LearnerSpec:
    trusts = ("shuffle", "central", "local", "none")
    return LearnerSpec(
        name=name, summary=summary, paper="ours", rhythm="batch", trusts=trusts, **how
    )


register(_spec("flow-ucb-first", "flow-ucb as first reported", run=run_first))
register(_spec("flow-ucb-first-centred", "the first flow-ucb on later releases", make=FlowUCB))
