"""What `audit` goes through: a mechanism, a kind of plan, a path; one row of the table each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.neighbours import EVERYTHING, Plan
from discreet.privacy.auditing.paths.batches import (
    RELEASE,
    REPORTS,
    batch_path,
    batch_paths,
    episodes_path,
    honest_path,
)
from discreet.privacy.auditing.paths.layers import layered_paths
from discreet.privacy.auditing.paths.path import Kind, Path
from discreet.privacy.auditing.paths.streams import (
    ADD,
    BLOCK,
    DISK,
    long_path,
    stream_paths,
    takes,
)
from discreet.privacy.auditing.paths.vectors import vector_paths
from discreet.privacy.auditing.probing import probe
from discreet.privacy.auditing.roster import TINY, Entry, LayeredEntry, VectorEntry, layers, vectors
from discreet.privacy.plans import BatchMechanism
from discreet.privacy.trust import Shuffle

_CROWDS = (1000, 100_000)
"""Batch sizes at which shuffled noise is audited besides small ones: one and rare bits per user."""
_LARGE = 70_000
"""Users of a batch that does not fit into 16 bits, or into pieces of so many users."""
_HONEST = ((0.5, 2, 4), (0.9, 9, 10), (0.9, 1, 2))
"""The promised fraction, and how many of how many users are then honest."""
_NO_LONG = ("tree-iid", "gaussian", "bounded")
"""Draws that are too many to probe; local noise that goes the way of ``laplace``."""
SLOW = ("bounded",)
"""Mechanisms that `quick` leaves out: their calibration alone takes five seconds."""
_QUICK_LONG = ("tree-laplace",)


@dataclass(frozen=True, eq=False)
class Case:
    """One row to be.

    Attributes:
        mechanism: its name.
        calibration: exact or paper.
        notion: JDP, LDP or SDP.
        claimed: (epsilon, delta).
        path: what it goes through.
        kind: of the plan.
        paths: the same way with several data sets.
        target: where an attack is easiest, None: nothing is attacked.
        hint: how draws enter, as far as it is known from a cheaper path.
    """

    mechanism: str
    calibration: str
    notion: str
    claimed: tuple[float, float]
    path: str
    kind: Kind
    paths: tuple[Path, ...]
    target: Callable[[], Path | None]
    hint: Callable[[], Additive | None] = lambda: None


def cases(chosen: list[Entry], *, quick: bool) -> Iterator[Case]:
    """All rows of these mechanisms; ``quick`` leaves out what takes long."""
    for entry in chosen:
        yield from _plain(entry, quick=quick)
        yield from _large(entry)
        if entry.schedule == "continual" and entry.calibration == "exact":
            yield from _plain(replace(entry, stationary=True), quick=quick)
            yield from _long(entry, quick=quick)
    yield from (case for entry in vectors(chosen) for case in _vector(entry))
    yield from (case for layered in layers(chosen) for case in _layered(layered))
    for entry in chosen:
        if entry.trust == "shuffle" and entry.calibration == "exact":
            yield from _honest(entry)


def _plain(entry: Entry, *, quick: bool) -> Iterator[Case]:
    """Every path of a batch or stream plan; of printed constants the first one only."""
    plan = entry.plan()
    groups: dict[str, list[Path]] = {}
    for path in paths_of(plan):
        groups.setdefault(path.name, []).append(path)
    if entry.trust == "shuffle" and isinstance(plan, BatchMechanism):
        sizes = _CROWDS[:1] if quick else _CROWDS
        crowds = [batch_path(plan, RELEASE, users).only(EVERYTHING) for users in sizes]
        groups[RELEASE] += [replace(path, thorough=False) for path in crowds]
    for name, paths in list(groups.items())[: 1 if entry.calibration == "paper" else None]:
        yield Case(
            entry.name,
            entry.calibration,
            plan.guarantee.notion,
            entry.claimed,
            name,
            entry.kind,
            tuple(paths),
            _target(entry, name),
        )


def _large(entry: Entry) -> Iterator[Case]:
    """Raw episodes of more users than 16 bits count."""
    if (entry.trust, entry.schedule, entry.calibration) == ("central", "batch", "exact"):
        plan = entry.target()
        if isinstance(plan, BatchMechanism):
            yield replace(
                _of(entry, plan.guarantee.notion, episodes_path(plan, _LARGE)), target=lambda: None
            )


def paths_of(plan: Plan) -> Iterator[Path]:
    """All short paths of a plan of either schedule."""
    if isinstance(plan, BatchMechanism):
        yield from batch_paths(plan)
    else:
        yield from stream_paths(plan)


def _target(entry: Entry, name: str) -> Callable[[], Path | None]:
    return lambda: next(path for path in paths_of(entry.target()) if path.name == name)


def _long(entry: Entry, *, quick: bool) -> Iterator[Case]:
    """More than 200 releases through the secure branch."""
    if entry.mechanism in _NO_LONG or (quick and entry.mechanism not in _QUICK_LONG):
        return
    plan = entry.long()
    if isinstance(plan, BatchMechanism):
        return
    for name in (ADD, DISK) if takes(plan, DISK) else (ADD,):
        path = long_path(plan, name, secure=True)
        hinted = name == ADD and not path.window
        yield Case(
            entry.name,
            entry.calibration,
            plan.guarantee.notion,
            entry.claimed,
            path.label,
            entry.kind,
            (path,),
            lambda: None,
            (lambda: probe(long_path(plan, BLOCK, secure=False))) if hinted else lambda: None,
        )


def _vector(vector: VectorEntry) -> Iterator[Case]:
    plan = vector.plan()
    for path in vector_paths(plan):
        yield _of(vector.entry, plan.guarantee.notion, path)


def _layered(layered: LayeredEntry) -> Iterator[Case]:
    plan = layered.plan()
    for path in layered_paths(plan, centred=layered.centred):
        yield _of(layered.entry, plan.guarantee.notion, path)


def _honest(entry: Entry) -> Iterator[Case]:
    """Who is dishonest adds no noise."""
    for share, honest, users in _HONEST:
        trust = Shuffle(*entry.claimed, mechanism=entry.mechanism, honest=share)
        path = honest_path(trust.calibrate(TINY, statistics=("visits",)), honest, users)
        yield replace(_of(entry, "SDP", path), path=f"{REPORTS} ({path.note})")


def _of(entry: Entry, notion: str, path: Path) -> Case:
    return Case(
        entry.name,
        entry.calibration,
        notion,
        entry.claimed,
        path.label,
        path.kind,
        (path,),
        lambda: path,
    )
