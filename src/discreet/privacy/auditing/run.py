"""`audit`: every mechanism, on every path, by calculation and by attack."""

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import Plain
from discreet.errors import UnsupportedError
from discreet.privacy.auditing.cases import SLOW, Case, cases
from discreet.privacy.auditing.categories import Categorical, categorical
from discreet.privacy.auditing.draws import unsound_draws
from discreet.privacy.auditing.empirical import epsilon_low, watched
from discreet.privacy.auditing.examine import TOLERANCE, Finding, examine
from discreet.privacy.auditing.fit import misfits
from discreet.privacy.auditing.linear import Additive, additive
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.auditing.paths.batches import SIMULATE
from discreet.privacy.auditing.paths.streams import BLOCK
from discreet.privacy.auditing.printed_messages import IntegerMessages
from discreet.privacy.auditing.reports import Enumerated
from discreet.privacy.auditing.roster import Entry, entries, find
from discreet.privacy.sampling.samplers import SimulationSampler

INTEGERS = "shuffle/integers"
"""The protocol of papers 000 and 001 to the letter; the library sends bits instead."""
_RUNS, _QUICK_RUNS = 600, 120


@dataclass(frozen=True)
class AuditRow:
    """What one mechanism claims, what one of its paths delivers, and what an attack could prove.

    Attributes:
        mechanism: its name.
        calibration: exact or paper.
        epsilon: the claim.
        delta: the claim.
        exact_epsilon: what the real code path delivers at the claimed delta (inf: nothing).
        exact_delta: what it delivers at the claimed epsilon (nan: only bounds are known).
        empirical_epsilon_low: no smaller epsilon is possible, with confidence 1 - 1e-6.
        notion: JDP, LDP or SDP.
        path: the public functions that data went through.
        kind: batch, stream, stationary, layered, vector or honest.
        problems: what depends on data and must not, in sentences.
    """

    mechanism: str
    calibration: str
    epsilon: float
    delta: float
    exact_epsilon: float
    exact_delta: float
    empirical_epsilon_low: float
    notion: str
    path: str = "release"
    kind: str = "batch"
    problems: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """The claim is true, as far as calculation and attack can tell."""
        largest = max(self.exact_epsilon, self.empirical_epsilon_low)
        return largest <= self.epsilon * (1 + TOLERANCE) and not self.problems

    def to_dict(self) -> dict[str, Plain]:
        """Plain values for JSON; what is infinite or unknown is null."""
        return {
            "mechanism": self.mechanism,
            "path": self.path,
            "kind": self.kind,
            "calibration": self.calibration,
            "notion": self.notion,
            "claimed": {"epsilon": self.epsilon, "delta": self.delta},
            "exact_epsilon": _finite(self.exact_epsilon),
            "exact_delta": _finite(self.exact_delta),
            "empirical_epsilon_low": self.empirical_epsilon_low,
            "holds": self.holds,
            "problems": list(self.problems),
        }


def audit(
    mechanisms: Sequence[str] = (),
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    quick: bool = False,
    seed: int = 0,
    more: Callable[[Sequence[Entry]], Iterable[Case]] = lambda _: (),
    progress: Callable[[str], None] = lambda _: None,
) -> list[AuditRow]:
    """Audit mechanisms at (epsilon, delta), all of them by default: one row for every path.

    Args:
        mechanisms: names such as ``"central/gaussian"``, ``"gaussian"`` or ``"central"``.
        epsilon: to calibrate to.
        delta: to calibrate to (mechanisms with a pure epsilon are held to delta = 0).
        quick: the secure branch only, one long stream, attacks on batches only, no bounded noise
            (unless it is asked for by name).
        seed: of the attacked noise.
        more: further cases of the chosen mechanisms, of code that builds on them.
        progress: told the name of each mechanism and path before its turn.

    >>> [(row.path, row.exact_epsilon) for row in audit(["central/laplace"], quick=True)]
    [('release', 1.0), ('simulate', 1.0), ('Trajectories.counts, release (70,000 users)', 1.0)]
    """
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    names = [name for name in mechanisms if name != INTEGERS]
    chosen = [e for name in names for e in find(name, epsilon=epsilon, delta=delta)]
    if not mechanisms:
        known = entries(epsilon=epsilon, delta=delta)
        chosen = [e for e in known if not quick or e.mechanism not in SLOW]
    rows = []
    chosen = list(dict.fromkeys(chosen))
    for case in itertools.chain(cases(chosen, quick=quick), more(chosen)):
        progress(f"{case.mechanism}: {case.path} ({case.kind}, {case.calibration})")
        rows.append(_row(case, quick=quick, seed=seed))
    if not mechanisms or {INTEGERS, "shuffle", "bits"} & set(mechanisms):
        progress(f"{INTEGERS} (printed)")
        rows.append(_printed_messages(epsilon, delta, _RUNS, seed))
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def exact_view(plan: Plan, users: int = 1) -> Additive | Categorical | Enumerated:
    """The plan's exact privacy on its main path, or of its reports."""
    try:
        return additive(plan, users=users)
    except UnsupportedError as reason:
        if plan.guarantee.notion == "LDP":
            return Enumerated(plan)
        try:
            return categorical(plan, users)
        except UnsupportedError:
            raise reason from None


def _row(case: Case, *, quick: bool, seed: int) -> AuditRow:
    epsilon, delta = case.claimed
    hint = case.hint()
    found = [
        examine(path, secure=kind, hint=hint)
        for path in case.paths
        for kind in (path.secure[-1:] if quick else path.secure)
    ]
    problems = [text for f in found for text in (*f.problems, f.unlisted) if text]
    if not quick and case.kind in ("batch", "continual"):  # the others share their draws
        problems += _misfits(found, seed)
    if case.calibration == "exact" and (not quick or _main(case)):
        problems += _unsound_draws(case)
    points = [f.view.curve(epsilon, delta) for f in found if f.view is not None]
    return AuditRow(
        mechanism=case.mechanism,
        calibration=case.calibration,
        epsilon=epsilon,
        delta=delta,
        exact_epsilon=max((point[0] for point in points), default=math.inf),
        exact_delta=max((point[1] for point in points), default=1.0),
        empirical_epsilon_low=_attack(case, quick=quick, seed=seed),
        notion=case.notion,
        path=case.path,
        kind=case.kind,
        problems=tuple(dict.fromkeys(problems)),
    )


def _misfits(found: Sequence[Finding], seed: int) -> list[str]:
    """The real samplers on the first path (the others share its code)."""
    return [text for finding in found[:2] for text in misfits(finding, seed)]


def _main(case: Case) -> bool:
    """A batch or a stream, as it runs with real people."""
    return case.kind in ("batch", "continual") and case.path not in (SIMULATE, BLOCK)


def _unsound_draws(case: Case) -> list[str]:
    """The secure sampler, on the first path through its branch (large batches draw alike)."""
    small = (path for path in case.paths if path.thorough or path.releases > 1)
    paths = [path for path in small if True in path.secure]
    return [text for path in paths[:1] for text in unsound_draws(path)]


def _printed_messages(epsilon: float, delta: float, runs: int, seed: int) -> AuditRow:
    """The protocol that the papers print, at its worse crowd."""
    view = IntegerMessages(epsilon, delta, crowd=1)
    sampler = SimulationSampler(np.random.default_rng([seed, 1]))
    return AuditRow(
        mechanism=INTEGERS,
        calibration="paper",
        epsilon=epsilon,
        delta=delta,
        exact_epsilon=view.epsilon(delta),
        exact_delta=view.delta(epsilon),
        empirical_epsilon_low=epsilon_low(*view.samples(sampler, runs), delta),
        notion="SDP",
        path="release_reports",
    )


def _attack(case: Case, *, quick: bool, seed: int) -> float:
    path = None if quick and case.kind != "batch" else case.target()
    if path is None:
        return 0.0
    runs = (_QUICK_RUNS if quick else _RUNS) // (1 if path.releases == 1 else 6)
    name = f"{case.mechanism}/{case.path}/{case.kind}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return epsilon_low(*watched(path, SimulationSampler(rng), runs), case.claimed[1])
