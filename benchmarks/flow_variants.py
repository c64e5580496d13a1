"""flow-ucb with one part taken out or changed, each under a name of its own: ``flow-ucb:part``.

Importing this module registers them for this process. Which part is worth what is the table of
``python -m tools.flow_ablation``. ``flow-ucb:NAME=VALUE`` has another value of a setting
(``shrink=0.8``) or of a constant of the package (``ODD_ROWS=0.25``): `known` registers it.
"""

import contextlib
import importlib
import math
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.flow_ucb_first import PlainGaussianBatch
from benchmarks.flow_ucb_first.learner import USUAL_CONFIDENCE, USUAL_GROWTH
from discreet._seeds import RunSeeds
from discreet.learners import flow_ucb
from discreet.learners.flow_ucb import sizing
from discreet.learners.flow_ucb.belief import Belief
from discreet.learners.flow_ucb.evidence import BIAS, VISITS
from discreet.learners.flow_ucb.learner import FlowUCB
from discreet.learners.flow_ucb.settings import FlowSettings, usual_confidence
from discreet.learners.learn import learn_in_batches, public_facts
from discreet.learners.registry import LearnerSpec, learner_names, register
from discreet.learners.result import Result
from discreet.mdp.tabular import TabularMDP
from discreet.privacy.postprocess.flow import consistent_flow
from discreet.privacy.postprocess.looks import Looks, inflow_visits
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.trust import TrustModel


class NeverPooled(FlowUCB):
    """Every step learns for itself."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"pooling": "never"} | settings)


class NoOwnStepCheck(FlowUCB):
    """The gate alone decides what is pooled."""

    def _checked(self, belief: Belief, *, exploring: bool) -> Belief:
        return belief


class FirstWidth(FlowUCB):
    """One width for all rows, as in the first generation."""

    def _width(self, belief: Belief) -> np.ndarray:
        rows = math.prod(self.problem.shape.visits)
        grown = math.log(self._told + rows) ** USUAL_GROWTH[False]
        return np.full(belief.gains.shape[:3], USUAL_CONFIDENCE[False] * rows**0.25 * grown)


class RewardWidth(FlowUCB):
    """A row counts as seen as often as its reward was, however rare its transitions are."""

    def _seen(self, belief: Belief) -> np.ndarray:
        return belief.gains[..., VISITS]


class AddedUp(FlowUCB):
    """Errors of single steps add up along a route as they are, like those of a pooled row."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        planner = self._planner.optimistic
        self._planner.optimistic = lambda belief, *how: planner(_all_pooled(belief), *how)


def _all_pooled(belief: Belief) -> Belief:
    """As if every row's rewards were those of all steps; its sums stay what they are."""
    return belief._replace(pooled_gains=np.ones_like(belief.pooled_gains))


class SoFar(FlowUCB):
    """Caution for as many users as there were so far, however noise is paid, and all of it."""

    def begin(self) -> None:
        """As ever, but for the confidence and the width."""
        super().begin()
        self.settings["confidence"] = usual_confidence(self._plenty)
        self._ahead = 1.0


class OnePlan(FlowUCB):
    """One route per batch, however scarce users are; batches of a least size may have more."""

    _scarce = False


class Uncharted(FlowUCB):
    """Batches are sized for what lies behind unknown actions, too."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._planner.charted = lambda belief, plan: plan


class NoHiding(FlowUCB):
    """Noise is not taken to hide ways to states in which nobody was seen, nor visits."""

    _hiding = 0.0


class NoCloseCalls(FlowUCB):
    """No more caution about what is almost as good as the best."""

    _close_caution = 0.0


class NoLean(FlowUCB):
    """The bias of the projection is not paid for: it neither leans nor hides."""

    def tell(self, counts: PrivateCounts) -> None:
        """As ever, without the sums of w·sigma."""
        super().tell(counts)
        self._evidence.moves[..., BIAS] = 0.0


class NoFlow(FlowUCB):
    """Noisy counts as they are; visits are their sums, and what flows into the last step."""

    def _flow(self, counts: PrivateCounts, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        transitions = np.asarray(counts.row_transitions, np.float64)
        rows = np.nonzero(counts.played)
        return transitions, inflow_visits(transitions, rows, self.problem.shape.horizon)


class SignedFlow(FlowUCB):
    """Flow equations, but negative counts allowed."""

    def _flow(self, counts: PrivateCounts, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if counts.noise_variance["transitions"] == 0:
            return super()._flow(counts, chosen)
        flow = consistent_flow(
            np.asarray(counts.row_transitions, np.float64),
            users=counts.users,
            played=counts.played,
            start=self.problem.start,
            variance=counts.noise_variance["transitions"],
            signed=True,
            looks=Looks(last_transitions=counts.last_transitions),
        )
        return flow.transitions, flow.visits


class NoCredit(FlowUCB):
    """All batches weigh the same."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"ease": 1e15} | settings)


class FirstShrink(FlowUCB):
    """Batches leave 0.8 of what is not known, as in the first generation."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"shrink": 0.8} | settings)


class BonusGoal(FlowUCB):
    """Batches shrink the bonus, however far it is above what can be earned."""

    def _sized(self, *arguments: Any) -> Any:
        usual, sizing.VALUE_SHARE = sizing.VALUE_SHARE, math.inf
        try:
            return super()._sized(*arguments)
        finally:
            sizing.VALUE_SHARE = usual


class HalfConfidence(FlowUCB):
    """Half of the usual confidence."""

    factor = 0.5

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.settings["confidence"] *= self.factor


class TwiceConfidence(HalfConfidence):
    """Twice the usual confidence."""

    factor = 2.0


VARIANTS: dict[str, type[FlowUCB]] = {
    "never-pooled": NeverPooled,
    "no-own-step-check": NoOwnStepCheck,
    "first-width": FirstWidth,
    "reward-width": RewardWidth,
    "added-up": AddedUp,
    "so-far": SoFar,
    "one-plan": OnePlan,
    "uncharted": Uncharted,
    "no-hiding": NoHiding,
    "no-close-calls": NoCloseCalls,
    "no-lean": NoLean,
    "no-flow": NoFlow,
    "signed-flow": SignedFlow,
    "no-credit": NoCredit,
    "first-shrink": FirstShrink,
    "bonus-goal": BonusGoal,
    "half-confidence": HalfConfidence,
    "twice-confidence": TwiceConfidence,
}
PLAIN = "plain-rewards"
"""As shipped, on sums of r and transitions of every step: what centring is worth (central)."""


def run_plain(
    mdp: TabularMDP, trust: TrustModel, episodes: int, seeds: RunSeeds, **settings: Any
) -> Result:
    """A whole run on plain sums."""
    plan = PlainGaussianBatch.calibrate(trust, mdp.shape, statistics=FlowUCB.statistics)
    learner = FlowUCB(public_facts(mdp, episodes), plan, seeds.generator("policy"), **settings)
    return learn_in_batches(f"flow-ucb:{PLAIN}", mdp, learner, seeds)


def _register(name: str, summary: str, trusts: tuple[str, ...], **how: Any) -> None:
    register(
        LearnerSpec(
            name=f"flow-ucb:{name}",
            summary=summary,
            paper="ours",
            rhythm="batch",
            trusts=trusts,
            **how,
        )
    )


STANDING = "flow-ucb-first", "uniform-etc"
"""Names that stand for more than a learner of the roster (`benchmarks.flow_rows`)."""


def known(learner: str) -> str:
    """The name, once it can be run: registers ``flow-ucb:NAME=VALUE``; ValueError if it cannot."""
    if learner in (*learner_names(), *STANDING):
        return learner
    part, _, rest = learner.partition(":")
    if part != "flow-ucb" or not rest:
        raise ValueError(
            f"Expected a learner of the roster, {' or '.join(STANDING)}, or flow-ucb:PART (parts: "
            f"{', '.join((PLAIN, *VARIANTS))}), got {learner!r}."
        )
    name, _, value = rest.partition("=")
    is_setting = name in FlowSettings.__dataclass_fields__ and name not in ("pooling", "mixing")
    modules = [] if is_setting else _modules_with(name)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"Expected a finite number after {name}=, got {value!r}.")
    if is_setting:
        FlowSettings(**{name: number}).check()
    kind = _with_setting(name, number) if is_setting else _with_constant(name, number, modules)
    _register(learner.removeprefix("flow-ucb:"), f"{name} is {value}", EVERYBODY, make=kind)
    return learner


def _modules_with(name: str) -> list[ModuleType]:
    """The modules that read a constant; compiled code keeps the value that it was made with."""
    places = [f"{flow_ucb.__name__}.{one.name}" for one in pkgutil.iter_modules(flow_ucb.__path__)]
    found = [one for one in map(importlib.import_module, places) if hasattr(one, name)]
    compiled = [one.__name__ for one in found if one.__name__.endswith("_kernels")]
    if not name.isupper() or not found or compiled:
        why = f", which is compiled into {', '.join(compiled)}" if compiled else ""
        raise ValueError(f"Expected a part, a setting or a constant of flow-ucb, got {name}{why}.")
    return found


def _with_setting(name: str, value: float) -> type[FlowUCB]:
    class Changed(FlowUCB):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            super().__init__(*arguments, **{name: value} | settings)

    return Changed


def _with_constant(name: str, number: float, modules: list[ModuleType]) -> type[FlowUCB]:
    """Reads another value while it thinks; other learners of the process read the usual one."""
    usual = getattr(modules[0], name)
    if not isinstance(usual, int | float):
        raise ValueError(f"Expected a constant that is a number, got {name}.")
    other = type(usual)(number)
    if other != number:
        raise ValueError(f"Expected a whole number after {name}=, got {number:g}.")

    @contextlib.contextmanager
    def changed() -> Iterator[None]:
        for one in modules:
            setattr(one, name, other)
        try:
            yield
        finally:
            for one in modules:
                setattr(one, name, usual)

    class Changed(FlowUCB):
        begin, ask = changed()(FlowUCB.begin), changed()(FlowUCB.ask)
        tell, greedy = changed()(FlowUCB.tell), changed()(FlowUCB.greedy)

    return Changed


EVERYBODY = ("shuffle", "central", "local", "none")
for _name, _kind in VARIANTS.items():
    _register(_name, (_kind.__doc__ or "").strip(), EVERYBODY, make=_kind)
_register(PLAIN, "As shipped, on plain sums.", ("central",), run=run_plain)
