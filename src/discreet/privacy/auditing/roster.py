"""Every mechanism of the library by name, in every kind of plan, small enough to be audited."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from discreet.adversarial.mechanism import (
    Feedback,
    LayeredMechanism,
    LayeredSize,
    calibrate_layered,
)
from discreet.errors import DiscreetError, DiscreetWarning, UnknownNameError
from discreet.mdp.shape import Shape
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.auditing.paths.path import Kind
from discreet.privacy.mechanisms.registry import MechanismSpec, Schedule, everything, mechanisms
from discreet.privacy.sensitivity import CENTRED, STATISTICS, Reach
from discreet.privacy.trust import Calibration, Central, Local, PrivateTrust, Shuffle
from discreet.privacy.vectors import VectorMechanism, vector_stream

_TRUST: dict[str, type[PrivateTrust]] = {"central": Central, "local": Local, "shuffle": Shuffle}
BATCH = Shape(states=2, actions=2, horizon=6)
SMALL = Shape(states=1, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)
EPISODES = 5
_PRINTED_EPISODES = 8
"""A power of two: log K in the printed constants is then the number of levels."""
LONG = 256
_CENTRED = ("central/gaussian", "central/laplace")
"""Batches that are released in two forms: as learners ask for them, and plain."""


@dataclass(frozen=True)
class Entry:
    """One mechanism in one schedule and calibration, at one (epsilon, delta)."""

    trust: str
    mechanism: str
    schedule: Schedule
    calibration: Calibration = "exact"
    epsilon: float = 1.0
    delta: float = 1e-6
    stationary: bool = False
    centred: bool = False
    """Central batches as learners ask for them: centred rewards, no last transitions."""

    @property
    def name(self) -> str:
        """For instance ``central/gaussian``, ``local/laplace-continual``."""
        both = self.schedule == "continual" and self.mechanism in mechanisms(self.trust, "batch")
        form = "-centred" if self.centred else "-continual" if both else ""
        return f"{self.trust}/{self.mechanism}{form}"

    @property
    def kind(self) -> Kind:
        """Batch, stream or stationary."""
        return "stationary" if self.stationary else self.schedule

    @property
    def known(self) -> MechanismSpec:
        """What the registry says of it."""
        return mechanisms(self.trust, self.schedule)[self.mechanism]

    @property
    def claimed(self) -> tuple[float, float]:
        """What is asked for: pure mechanisms are asked for a pure epsilon."""
        return self.epsilon, 0.0 if self.known.pure else self.delta

    @property
    def model(self) -> PrivateTrust:
        """The trust model, asked for this mechanism."""
        epsilon, delta = self.claimed
        return _TRUST[self.trust](
            epsilon, delta, mechanism=self.mechanism, calibration=self.calibration
        )

    def plan(self) -> Plan:
        """A plan whose exact privacy can be computed in less than a second."""
        if self.known.randomises:  # all its outcomes are listed
            return self._calibrate(SMALL, CENTRED if self.mechanism == "split" else ("rewards",), 1)
        if self.calibration == "paper" and self.schedule == "continual":
            return self._calibrate(SMALL, STATISTICS, _PRINTED_EPISODES)
        if self.mechanism == "bounded":  # its calibration takes long
            return self._calibrate(SMALL, ("visits",))
        small = self.trust == "shuffle" or self.schedule == "continual"
        return self._calibrate(SMALL if small else BATCH, STATISTICS)

    def target(self) -> Plan:
        """The same mechanism where it is easiest to attack: one step, one statistic.

        Printed constants do not follow the statistics: they are attacked on all three.
        """
        if self.mechanism == "bounded":
            return self.plan()
        statistics = ("visits",) if self.calibration == "exact" else STATISTICS
        shape = replace(TINY, horizon=2) if self.stationary else TINY
        return self._calibrate(shape, statistics)

    def long(self) -> Plan:
        """A long stream of few counters."""
        return self._calibrate(SMALL if self.known.randomises else TINY, ("visits",), LONG)

    def _calibrate(
        self, shape: Shape, statistics: tuple[str, ...], episodes: int = EPISODES
    ) -> Plan:
        """Printed constants warn when used; an audit knows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            if self.schedule == "batch":
                return self._batch(shape, statistics)
            return self.model.calibrate(
                shape,
                schedule="continual",
                statistics=statistics,
                episodes=episodes,
                stationary=self.stationary,
            )

    def _batch(self, shape: Shape, statistics: tuple[str, ...]) -> Plan:
        """Centred mechanisms as learners ask for them: no visits beside the rewards."""
        if self.centred:
            return self.model.calibrate(shape, statistics=CENTRED, last_transitions=False)
        if self.mechanism not in ("histogram", "split"):
            return self.model.calibrate(shape, statistics=statistics)
        asked = tuple(name for name in statistics if name != "visits") or statistics
        return self.model.calibrate(shape, statistics=asked, last_transitions=False)


def entries(*, epsilon: float = 1.0, delta: float = 1e-6) -> Iterator[Entry]:
    """All mechanisms, exact calibrations first; printed ones where a paper prints them."""
    for calibration in ("exact", "paper"):
        for known in everything():
            if known.trust == "none":
                continue
            entry = Entry(known.trust, known.name, known.schedule, calibration, epsilon, delta)  # type: ignore[arg-type]
            if calibration == "exact" or _printed(entry):
                yield entry
            if calibration == "exact" and entry.name in _CENTRED:
                yield replace(entry, centred=True)


def find(name: str, **options: float) -> list[Entry]:
    """Entries called ``name``: ``central/gaussian``, or ``gaussian`` in all trust models."""
    known = list(entries(**options))
    found = [e for e in known if name in (e.name, e.mechanism, e.trust)]
    if not found:
        names = {name for e in known for name in (e.name, e.mechanism, e.trust)}
        raise UnknownNameError("mechanism", name, names)
    return found


def _printed(entry: Entry) -> bool:
    try:
        return entry.plan().guarantee.claimed is not None
    except DiscreetError:
        return False


@dataclass(frozen=True)
class VectorEntry:
    """A mechanism on named vectors."""

    entry: Entry
    reach: Reach = field(default=Reach(units=4))

    def plan(self) -> VectorMechanism:
        """Four cells, six releases."""
        sizes = {"losses": 4}
        return vector_stream(self.entry.model, sizes, self.reach, episodes=EPISODES + 1)


@dataclass(frozen=True)
class LayeredEntry:
    """A mechanism on the counts and losses of a layered MDP."""

    entry: Entry
    feedback: Feedback
    centred: bool = False

    def plan(self) -> LayeredMechanism:
        """Two layers of one state and two actions, four releases."""
        return calibrate_layered(
            self.entry.model,
            LayeredSize(widths=(1, 1, 1), actions=2),
            EPISODES - 1,
            feedback=self.feedback,
            centred_losses=self.centred,
        )


def vectors(chosen: list[Entry]) -> Iterator[VectorEntry]:
    """Dense vectors, and sparse ones that pile up, for every stream that adds noise."""
    for entry in chosen:
        if _adds_noise(entry):
            yield VectorEntry(entry)
            if entry.trust == "central":
                yield VectorEntry(entry, Reach(units=4, pile=2))


def layers(chosen: list[Entry]) -> Iterator[LayeredEntry]:
    """Full information, bandit feedback, and centred bandit losses."""
    for entry in chosen:
        if _adds_noise(entry) and entry.known.losses:
            yield LayeredEntry(entry, "full")
            yield LayeredEntry(entry, "bandit")
            if entry.mechanism in ("toeplitz", "laplace"):
                yield LayeredEntry(entry, "bandit", centred=True)


def _adds_noise(entry: Entry) -> bool:
    stream = entry.schedule == "continual" and entry.calibration == "exact" and not entry.stationary
    return stream and not entry.known.randomises
