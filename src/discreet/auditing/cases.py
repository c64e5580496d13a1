"""What `audit` goes through: every mechanism, small enough to be audited, on every path.

An `Audited` is a mechanism in one schedule and calibration at one (epsilon, delta); a `Case` is one
row of the table. How small a mechanism must be made it says itself (`AuditSizes`).
"""

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from discreet.auditing.additive import Additive, probe
from discreet.auditing.neighbours import EVERYTHING
from discreet.auditing.paths import (
    ADD,
    BLOCK,
    LONG,
    RELEASE,
    Kind,
    Mechanism,
    Path,
    batch_path,
    episodes_path,
    honest_path,
    long_path,
    returning_path,
    short_paths,
    vector_paths,
)
from discreet.errors import DiscreetError, DiscreetWarning, UnknownNameError
from discreet.mdp.shape import Shape
from discreet.privacy.mechanisms.base import USUAL_SIZES, AuditSizes, BatchMechanism
from discreet.privacy.mechanisms.registry import MechanismSpec, Schedule, everything, mechanisms
from discreet.privacy.sensitivity import CENTRED, STATISTICS, Sensitivity
from discreet.privacy.trust import Calibration, Central, Local, PrivateTrust, Shuffle
from discreet.privacy.vectors import calibrate_vectors

_TRUST: dict[str, type[PrivateTrust]] = {"central": Central, "local": Local, "shuffle": Shuffle}
_BATCH = Shape(states=2, actions=2, horizon=6)
_SMALL = Shape(states=1, actions=2, horizon=2)
_TINY = Shape(states=1, actions=2, horizon=1)
_PRINTED_EPISODES = 8
"""A power of two: log K in the printed constants is then the number of levels."""
_VECTOR_EPISODES = 6
_CROWDS = (1000, 100_000)
"""Batch sizes at which shuffled noise is audited besides small ones: one and rare bits per user."""
_LARGE = 70_000
"""Users of a batch that does not fit into 16 bits, or into pieces of so many users."""
_HONEST = ((0.5, 2, 4), (0.9, 9, 10), (0.9, 1, 2))
"""The claimed fraction, and how many of how many users are then honest."""


@dataclass(frozen=True)
class Audited:
    """One mechanism in one schedule and calibration, at one (epsilon, delta)."""

    trust: str
    mechanism: str
    schedule: Schedule
    calibration: Calibration = "exact"
    epsilon: float = 1.0
    delta: float = 1e-6
    stationary: bool = False
    participations: int = 1
    centred: bool = False
    """As learners ask for it: centred rewards, no last transitions."""

    @property
    def name(self) -> str:
        """For instance ``central/gaussian``, ``local/laplace-continual``."""
        both = self.schedule == "continual" and self.mechanism in mechanisms(self.trust, "batch")
        form = "-centred" if self.centred else "-continual" if both else ""
        return f"{self.trust}/{self.mechanism}{form}"

    @property
    def kind(self) -> Kind:
        return "stationary" if self.stationary else self.schedule

    @property
    def spec(self) -> MechanismSpec:
        """What the registry says of it."""
        return mechanisms(self.trust, self.schedule)[self.mechanism]

    @property
    def sizes(self) -> AuditSizes:
        """What the mechanism says of its audit."""
        sizes: AuditSizes = getattr(self.spec.load(), "audit", USUAL_SIZES)
        return sizes

    @property
    def claimed(self) -> tuple[float, float]:
        """What is asked for: pure mechanisms are asked for a pure epsilon."""
        return self.epsilon, 0.0 if self.spec.pure else self.delta

    @property
    def adds_noise(self) -> bool:
        """A continual release of counters plus noise, which vectors and losses can have too."""
        plain = self.calibration == "exact" and not self.stationary
        return self.schedule == "continual" and plain and not self.spec.randomises

    @property
    def model(self) -> PrivateTrust:
        """The trust model, asked for this mechanism."""
        epsilon, delta = self.claimed
        return _TRUST[self.trust](
            epsilon,
            delta,
            mechanism=self.mechanism,
            calibration=self.calibration,
            participations=self.participations,
            separation=2 if self.returning_centrally else 1,
        )

    @property
    def returning_centrally(self) -> bool:
        """Participations of one person meet in the counters of a curator."""
        central = (self.trust, self.schedule) == ("central", "continual")
        return central and self.participations > 1

    def small(self) -> Mechanism:
        """Calibrated so that its exact privacy can be computed in less than a second."""
        sizes = self.sizes
        small = self.trust == "shuffle" or self.schedule == "continual"
        shape = sizes.shape or (_SMALL if small else _BATCH)
        printed = self.calibration == "paper" and sizes.episodes > 1
        return self._calibrate(
            shape, sizes.statistics, _PRINTED_EPISODES if printed else sizes.episodes
        )

    def target(self) -> Mechanism:
        """The same mechanism where it is easiest to attack: one step, one statistic.

        Printed constants do not follow the statistics: they are attacked on all three.
        """
        if not self.sizes.target:
            return self.small()
        statistics = ("visits",) if self.calibration == "exact" else STATISTICS
        shape = replace(_TINY, horizon=2) if self.stationary else _TINY
        return self._calibrate(shape, statistics)

    def long(self) -> Mechanism:
        """Many releases of few counters."""
        return self._calibrate(_SMALL if self.spec.randomises else _TINY, ("visits",), LONG)

    def _calibrate(
        self, shape: Shape, statistics: tuple[str, ...], episodes: int = USUAL_SIZES.episodes
    ) -> Mechanism:
        with warnings.catch_warnings():  # printed constants warn when used; an audit knows
            warnings.simplefilter("ignore", DiscreetWarning)
            if self.schedule == "batch":
                return self.model.calibrate(
                    shape,
                    statistics=CENTRED if self.centred else statistics,
                    last_transitions=self.sizes.last_transitions and not self.centred,
                )
            return self.model.calibrate_stream(
                shape,
                statistics=statistics,
                episodes=episodes,
                stationary=self.stationary,
            )


def entries(*, epsilon: float = 1.0, delta: float = 1e-6) -> Iterator[Audited]:
    """All mechanisms, exact calibrations first; printed ones where a paper prints them."""
    known = [spec for spec in everything() if spec.trust != "none"]
    found = [Audited(s.trust, s.name, s.schedule, epsilon=epsilon, delta=delta) for s in known]
    for entry in found:
        yield from (replace(entry, centred=form == "centred") for form in entry.sizes.forms)
    for entry in (replace(entry, calibration="paper") for entry in found):
        try:
            printed = entry.small().guarantee.claimed is not None
        except DiscreetError:
            continue
        if printed:
            yield entry


def find(name: str, **options: float) -> list[Audited]:
    """Entries called ``name``: ``central/gaussian``, or ``gaussian`` in all trust models."""
    known = list(entries(**options))
    found = [e for e in known if name in (e.name, e.mechanism, e.trust)]
    if not found:
        names = {name for e in known for name in (e.name, e.mechanism, e.trust)}
        raise UnknownNameError("mechanism", name, names)
    return found


@dataclass(frozen=True, eq=False)
class Case:
    """One row to be.

    Attributes:
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

    @classmethod
    def of(cls, entry: Audited, notion: str, path: Path) -> "Case":
        """A row with one path, on which it is attacked too."""
        row = entry.name, entry.calibration, notion, entry.claimed, path.label, path.kind
        return cls(*row, (path,), lambda: path)


def cases(chosen: Sequence[Audited], *, quick: bool) -> Iterator[Case]:
    """All rows of these mechanisms; ``quick`` leaves out what takes long."""
    for entry in chosen:
        yield from _plain(entry, quick=quick)
        if (entry.trust, entry.schedule, entry.calibration) == ("central", "batch", "exact"):
            yield from _large(entry)
        if entry.schedule == "continual" and entry.calibration == "exact":
            yield from _plain(replace(entry, stationary=True), quick=quick)
            if entry.sizes.quick_long if quick else entry.sizes.long:
                yield from _long(entry)
    for entry in chosen:
        if entry.adds_noise:
            yield from vector_cases(entry)
    for entry in chosen:
        if entry.trust == "shuffle" and entry.calibration == "exact":
            yield from _honest(entry)
    for entry in chosen:
        if entry.spec.returning and entry.calibration == "exact":
            yield from _returning(entry, quick=quick)


def _plain(entry: Audited, *, quick: bool) -> Iterator[Case]:
    """Every short path; of printed constants the first one only."""
    mechanism = entry.small()
    groups: dict[str, list[Path]] = {}
    for path in short_paths(mechanism):
        groups.setdefault(path.name, []).append(path)
    if entry.trust == "shuffle" and isinstance(mechanism, BatchMechanism):
        for users in _CROWDS[:1] if quick else _CROWDS:
            crowd = batch_path(mechanism, RELEASE, users).only(EVERYTHING)
            groups[RELEASE].append(replace(crowd, thorough=False))
    for name, paths in list(groups.items())[: 1 if entry.calibration == "paper" else None]:
        case = Case.of(entry, mechanism.guarantee.notion, replace(paths[0], note=""))
        target = functools.partial(_target, entry, name)
        yield replace(case, kind=entry.kind, paths=tuple(paths), target=target)


def _target(entry: Audited, name: str) -> Path:
    return next(path for path in short_paths(entry.target()) if path.name == name)


def _large(entry: Audited) -> Iterator[Case]:
    """Raw episodes of more users than 16 bits count."""
    mechanism = entry.target()
    if isinstance(mechanism, BatchMechanism):
        case = Case.of(entry, mechanism.guarantee.notion, episodes_path(mechanism, _LARGE))
        yield replace(case, target=lambda: None)


def _long(entry: Audited) -> Iterator[Case]:
    """More than 200 releases through the secure branch."""
    mechanism = entry.long()
    if isinstance(mechanism, BatchMechanism):
        return
    path = long_path(mechanism, ADD, secure=True)
    case = replace(
        Case.of(entry, mechanism.guarantee.notion, path), kind=entry.kind, target=lambda: None
    )
    if not path.window:
        block = long_path(mechanism, BLOCK, secure=False)
        case = replace(case, hint=functools.partial(probe, block))
    yield case


def vector_cases(entry: Audited) -> Iterator[Case]:
    """Four cells, six releases: dense vectors, and sparse ones that pile up."""
    dense, piled = Sensitivity(units=4), Sensitivity(units=4, pile=2)
    for sensitivity in (dense, piled) if entry.trust == "central" else (dense,):
        sizes = {"losses": 4}
        mechanism = calibrate_vectors(entry.model, sizes, sensitivity, episodes=_VECTOR_EPISODES)
        for path in vector_paths(mechanism):
            yield Case.of(entry, mechanism.guarantee.notion, path)


def _returning(entry: Audited, *, quick: bool) -> Iterator[Case]:
    """One person in two and in three batches, or so often in one continual release.

    Randomised reports are listed, which takes long: two of a batch, like which all others are.
    """
    if entry.spec.randomises and entry.schedule == "continual":
        return
    for times in (2,) if quick or entry.spec.randomises else (2, 3):
        mechanism = replace(entry, participations=times).target()
        yield Case.of(entry, mechanism.guarantee.notion, returning_path(mechanism))


def _honest(entry: Audited) -> Iterator[Case]:
    """Who is dishonest adds no noise."""
    for share, honest, users in _HONEST:
        trust = Shuffle(*entry.claimed, mechanism=entry.mechanism, honest=share)
        path = honest_path(trust.calibrate(_TINY, statistics=("visits",)), honest, users)
        yield Case.of(entry, "SDP", path)
