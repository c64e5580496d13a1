"""`audit`: every mechanism, on every path, by calculation and by attack."""

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import _validate
from discreet._types import Plain
from discreet.auditing.attack import epsilon_low, watched
from discreet.auditing.cases import Audited, Case, cases, entries, find
from discreet.auditing.draws import misfits, unsound_draws
from discreet.auditing.examine import TOLERANCE, examine
from discreet.auditing.layered import layered_cases
from discreet.auditing.offline import fit_cases
from discreet.auditing.paths import BLOCK, SIMULATE
from discreet.privacy.sampling.samplers import SimulationSampler

_RUNS, _QUICK_RUNS = 600, 120


@dataclass(frozen=True)
class AuditRow:
    """What one mechanism claims, what one of its paths delivers, and what an attack could prove.

    Attributes:
        calibration: exact or paper.
        epsilon, delta: the claim.
        exact_epsilon: what the real code path delivers at the claimed delta (inf: nothing).
        exact_delta: what it delivers at the claimed epsilon (nan: only bounds are known).
        empirical_epsilon_low: no smaller epsilon is possible, with confidence 1 - 1e-6.
        path: the public functions that data went through.
        kind: batch, continual, stationary, layered, vector or honest.
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
            "exact_epsilon": self.exact_epsilon if math.isfinite(self.exact_epsilon) else None,
            "exact_delta": self.exact_delta if math.isfinite(self.exact_delta) else None,
            "empirical_epsilon_low": self.empirical_epsilon_low,
            "holds": self.holds,
            "problems": list(self.problems),
        }


def audit(
    mechanisms: str | Sequence[str] = (),
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    quick: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[AuditRow]:
    """Audit mechanisms at (epsilon, delta), all of them by default: one row for every path.

    Args:
        mechanisms: one name or several: ``"central/gaussian"``, ``"gaussian"`` or ``"central"``.
        epsilon: mechanisms are calibrated to it.
        delta: likewise (mechanisms with a pure epsilon are held to delta = 0).
        quick: the secure branch only, one long run, attacks on batches only, no bounded noise
            (unless it is asked for by name).
        seed: the seed of the noise that is attacked.
        progress: called with the name of each mechanism and path before its turn.

    >>> for row in audit("central/laplace", quick=True):
    ...     print(row.path, row.exact_epsilon)
    release 1.0
    simulate 1.0
    Trajectories.counts, release (70,000 users) 1.0
    release (2 batches) 1.0
    fit 1.0
    fit (2 episodes of one person) 1.0
    """
    _validate.positive(epsilon=epsilon)
    _validate.delta(delta=delta)
    mechanisms = [mechanisms] if isinstance(mechanisms, str) else mechanisms
    chosen = [e for name in mechanisms for e in find(name, epsilon=epsilon, delta=delta)]
    if not mechanisms:
        known = entries(epsilon=epsilon, delta=delta)
        chosen = [e for e in known if not (quick and e.sizes.slow)]
    chosen = list(dict.fromkeys(chosen))
    rows = []
    for case in all_cases(chosen, quick=quick):
        progress(f"{case.mechanism}: {case.path} ({case.kind}, {case.calibration})")
        rows.append(_row(case, quick=quick, seed=seed))
    return rows


def all_cases(chosen: Sequence[Audited], *, quick: bool) -> Iterator[Case]:
    """The rows of mechanisms alone, and of what is built on them."""
    yield from cases(chosen, quick=quick)
    yield from layered_cases(chosen)
    yield from fit_cases(chosen)


def _row(case: Case, *, quick: bool, seed: int) -> AuditRow:
    epsilon, delta = case.claimed
    hint = case.hint()
    found = [
        examine(path, secure=kind, hint=hint)
        for path in case.paths
        for kind in (path.secure[-1:] if quick else path.secure)
    ]
    problems = [text for f in found for text in (*f.problems, f.unlisted) if text]
    real = case.kind in ("batch", "continual")
    if not quick and real:  # the others share their draws, and further paths their code
        problems += [text for finding in found[:2] for text in misfits(finding, seed)]
    main = real and case.path not in (SIMULATE, BLOCK)  # as it runs with real people
    if case.calibration == "exact" and (main or not quick):  # large batches draw alike
        small = [path for path in case.paths if path.thorough or path.releases > 1]
        branch = [path for path in small if True in path.secure]
        problems += [text for path in branch[:1] for text in unsound_draws(path)]
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


def _attack(case: Case, *, quick: bool, seed: int) -> float:
    path = None if quick and case.kind != "batch" else case.target()
    if path is None:
        return 0.0
    runs = (_QUICK_RUNS if quick else _RUNS) // (1 if path.releases == 1 else 6)
    name = f"{case.mechanism}/{case.path}/{case.kind}"
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return epsilon_low(*watched(path, SimulationSampler(rng), runs), case.claimed[1])
