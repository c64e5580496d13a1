"""Every mechanism of the library by name, each as a small plan that can be audited."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from discreet.errors import DiscreetError, DiscreetWarning, UnknownNameError
from discreet.mdp.shape import Shape
from discreet.privacy.auditing.neighbours import Plan
from discreet.privacy.mechanisms.registry import Rhythm, everything, mechanisms
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.trust import Calibration, Central, Local, Shuffle

_TRUST = {"central": Central, "local": Local, "shuffle": Shuffle}
BATCH = Shape(states=2, actions=2, horizon=6)
SMALL = Shape(states=1, actions=2, horizon=2)
TINY = Shape(states=1, actions=2, horizon=1)
EPISODES = 8
_PURE = ("laplace", "tree-laplace", "randomized-response", "one-step")


@dataclass(frozen=True)
class Entry:
    """One mechanism in one rhythm and calibration, at one (epsilon, delta)."""

    trust: str
    mechanism: str
    rhythm: Rhythm
    calibration: Calibration = "exact"
    epsilon: float = 1.0
    delta: float = 1e-6

    @property
    def name(self) -> str:
        """For instance ``central/gaussian``, ``local/laplace-stream``."""
        both = self.rhythm == "stream" and self.mechanism in mechanisms(self.trust, "batch")
        return f"{self.trust}/{self.mechanism}" + ("-stream" if both else "")

    @property
    def claimed(self) -> tuple[float, float]:
        """What is asked for: pure mechanisms are asked for a pure epsilon."""
        return self.epsilon, 0.0 if self.mechanism in _PURE else self.delta

    def plan(self) -> Plan:
        """A plan whose exact privacy can be computed in about a second."""
        if self.mechanism == "randomized-response":  # all 2^8 reports of a user are listed
            return self._calibrate(SMALL, ("transitions", "rewards"))
        small = self.rhythm == "stream" or self.mechanism == "one-step"
        return self._calibrate(SMALL if small else BATCH, STATISTICS)

    def target(self) -> Plan:
        """The same mechanism where it is easiest to attack: one step, one statistic.

        Printed constants do not follow the statistics: they are attacked on all three.
        """
        statistics = ("visits",) if self.calibration == "exact" else STATISTICS
        return self._calibrate(TINY, statistics, 256 if self.trust == "central" else EPISODES)

    def _calibrate(
        self, shape: Shape, statistics: tuple[str, ...], episodes: int = EPISODES
    ) -> Plan:
        """Printed constants warn when used; an audit knows."""
        epsilon, delta = self.claimed
        trust = _TRUST[self.trust](
            epsilon, delta, mechanism=self.mechanism, calibration=self.calibration
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiscreetWarning)
            if self.rhythm == "batch":
                return trust.calibrate(shape, statistics=statistics)
            return trust.calibrate(shape, rhythm="stream", statistics=statistics, episodes=episodes)


def entries(*, epsilon: float = 1.0, delta: float = 1e-6) -> Iterator[Entry]:
    """All mechanisms, exact calibrations first; printed ones where a paper prints them."""
    for calibration in ("exact", "paper"):
        for known in everything():
            if known.trust == "none":
                continue
            entry = Entry(known.trust, known.name, known.rhythm, calibration, epsilon, delta)  # type: ignore[arg-type]
            if calibration == "exact" or _printed(entry):
                yield entry


def find(name: str, **options: float) -> list[Entry]:
    """Entries called ``name``: ``central/gaussian``, or ``gaussian`` in all trust models."""
    known = list(entries(**options))
    found = [e for e in known if name in (e.name, e.mechanism, e.trust)]
    if not found:
        raise UnknownNameError("mechanism", name, {e.name for e in known})
    return found


def _printed(entry: Entry) -> bool:
    try:
        return entry.plan().guarantee.claimed is not None
    except DiscreetError:
        return False
