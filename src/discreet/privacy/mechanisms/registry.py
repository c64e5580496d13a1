"""The mechanisms by name: who may use each, in which schedule, and where its code is.

One table serves trust models, the audit, the command line and the loading of encoders. A mechanism
of your own is registered with `register`, or is an entry point ``discreet.mechanisms`` of a
package (``"central.batch.mine" = "my_package.noise:mine"``); it is then chosen by its name,
like any other.
"""

import functools
import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from discreet import _registry, _validate
from discreet.errors import InvalidInputError, UnknownNameError, UnsupportedError

if TYPE_CHECKING:
    from discreet._types import JsonObject
    from discreet.privacy.mechanisms.base import Encoder
    from discreet.privacy.trust import TrustModel

Schedule = Literal["batch", "continual"]

_HOME = "discreet.privacy.mechanisms"
_TRUSTS = ("central", "local", "shuffle")


@dataclass(frozen=True)
class MechanismSpec:
    """What is true of a mechanism before any number is known; everybody else asks it.

    Attributes:
        trust: central, local, shuffle or none.
        schedule: batch or continual.
        name: what a trust model calls it.
        calibrator: what has ``calibrate(spec, trust, request)``, a class of mechanisms or an object
            that makes them; or ``"module:name"``, in this package if it begins with a dot.
        pure: it delivers delta = 0, whatever delta is asked for.
        papers: that print constants for it; ``calibration="paper"`` means the first one's.
        returning: its calibrator counts several participations of one person.
        randomises: data themselves, instead of adding noise to counters.
        losses: its noise also serves the losses of adversarial learners, which are no units: its
            composition is known for moves of any size (continual).
        certified_as: the release that certificates call it an instance of; its name if empty.
    """

    trust: str
    schedule: Schedule
    name: str
    calibrator: Any
    pure: bool = False
    papers: tuple[str, ...] = ()
    returning: bool = False
    randomises: bool = False
    losses: bool = False
    certified_as: str = ""

    def load(self) -> Any:
        """What calibrates it.

        Raises:
            InvalidInputError: the package of a plug-in cannot be imported.
        """
        if self.ours or not isinstance(self.calibrator, str):
            found = self.calibrator
            return _load(found) if isinstance(found, str) else found
        try:
            return _load(self.calibrator)
        except _registry.FAILURES as error:
            raise InvalidInputError(
                f"The mechanism {self.name!r} cannot be loaded from {self.calibrator!r}: "
                f"{type(error).__name__}: {error}. Repair its package, or uninstall it."
            ) from error

    @property
    def code(self) -> Any:
        """The class or function behind it: of additive mechanisms what finds the noise."""
        found = self.load()
        return getattr(found, "design", found)

    @property
    def ours(self) -> bool:
        """Whether discreet ships it."""
        return isinstance(self.calibrator, str) and self.calibrator.startswith(".")

    @property
    def summary(self) -> str:
        """The first line of its docstring; one of ours is not loaded for it."""
        if self.ours:
            module, _, name = self.calibrator.partition(":")
            return _registry.first_line(_HOME + module, name)
        try:
            return (inspect.getdoc(self.code) or "").split("\n")[0]
        except InvalidInputError:
            return "(not available)"

    def check_returning(self, participations: int) -> None:
        """Refuse people who return where nothing is known of them."""
        if participations > 1 and not self.returning:
            raise UnsupportedError(
                f"The mechanism {self.name!r} is calibrated for one participation per person, got "
                f"participations={participations}; use another one of `discreet list mechanisms`, "
                f"or register it with returning=True if its calibrator counts them."
            )

    def check_printed(self, trust: "TrustModel") -> None:
        """Refuse the printed constants of a paper that prints none for this mechanism."""
        if trust.printed and not self.papers:
            raise UnsupportedError(
                f"No paper prints constants for mechanism={self.name!r}; use calibration='exact'."
            )
        if trust.paper and trust.paper not in self.papers:
            raise UnsupportedError(
                f"Paper {trust.paper} prints no constants for mechanism={self.name!r}, papers "
                f"{', '.join(self.papers)} do; use calibration='paper-{self.papers[0]}' or 'exact'."
            )


def _of(trust: str, schedule: Schedule, name: str, calibrator: str, **known: Any) -> MechanismSpec:
    return MechanismSpec(trust, schedule, name, calibrator, **{"returning": True} | known)


_002, _003 = ("002",), ("003", "004", "002")
_MECHANISMS: list[MechanismSpec] = [
    _of("none", "batch", "none", ".additive:none"),
    _of("none", "continual", "none", ".additive:none_continual"),
    _of("central", "batch", "gaussian", ".one_shot:gaussian"),
    _of("central", "batch", "laplace", ".one_shot:laplace", pure=True),
    _of("central", "continual", "toeplitz", ".toeplitz:toeplitz", losses=True),
    _of("central", "continual", "tree-signed", ".tree:tree_signed", pure=True, losses=True),
    _of(
        "central",
        "continual",
        "tree-laplace",
        ".tree:tree_laplace",
        pure=True,
        papers=("003", "004"),
        losses=True,
        returning=False,
    ),
    _of("local", "batch", "split", ".split:SplitBatch", pure=True, randomises=True),
    _of(
        "local",
        "continual",
        "laplace",
        ".local:laplace_continual",
        pure=True,
        papers=_003,
        losses=True,
    ),
    _of("local", "continual", "gaussian", ".local:gaussian_continual", papers=_002, losses=True),
    _of(
        "local",
        "continual",
        "randomized-response",
        ".randomized_response:RandomizedResponseContinual",
        pure=True,
        randomises=True,
        papers=_002,
    ),
    _of("local", "continual", "bounded", ".local:bounded_continual"),
    _of("local", "continual", "one-step", ".one_step:OneStepContinual", pure=True, randomises=True),
    _of("shuffle", "batch", "histogram", ".histogram:HistogramBatch"),
    _of("shuffle", "batch", "bits", ".bits:BitsBatch", papers=("001", "000"), returning=False),
]
"""The first of a trust model and schedule that is pure, or printed, where that is asked for, is its
default (`trust`)."""

_ENCODERS = {
    "histogram": "._devices:HistogramEncoder",
    "shuffle-bits": ".bits:BitsEncoder",
    "split": "._devices:SplitEncoder",
}


def mechanisms(trust: str, schedule: Schedule) -> dict[str, MechanismSpec]:
    """All of one trust model and schedule by name, the default first.

    >>> next(iter(mechanisms("central", "batch")))
    'gaussian'
    """
    return {m.name: m for m in everything() if (m.trust, m.schedule) == (trust, schedule)}


def everything() -> tuple[MechanismSpec, ...]:
    """Every mechanism of every trust model and schedule; those of other packages come last."""
    return (*_MECHANISMS, *_of_plugins())


@functools.cache
def _of_plugins() -> tuple[MechanismSpec, ...]:
    return tuple(
        _of_plugin(name, point.value)
        for name, point in _registry.entry_points("mechanisms").items()
    )


def _of_plugin(name: str, calibrator: str) -> MechanismSpec:
    """What an entry point ``trust.schedule.name`` says; it is loaded when it is used."""
    trust, _, rest = name.partition(".")
    schedule, _, own = rest.partition(".")
    if trust not in _TRUSTS or schedule not in get_args(Schedule) or not own:
        raise InvalidInputError(
            f"Expected an entry point of discreet.mechanisms to be named trust.schedule.name, for "
            f"instance central.batch.mine, got {name!r}; repair its package, or uninstall it."
        )
    if any((m.trust, m.schedule, m.name) == (trust, schedule, own) for m in _MECHANISMS):
        raise InvalidInputError(
            f"The entry point {name!r} of discreet.mechanisms takes the name of one that discreet "
            f"ships; rename it, or uninstall its package."
        )
    return MechanismSpec(trust, cast(Schedule, schedule), own, calibrator)


def register(mechanism: MechanismSpec) -> None:
    """Add a mechanism of your own.

    Raises:
        InvalidInputError: the trust model has one of this name in this schedule.
    """
    if mechanism.name in mechanisms(mechanism.trust, mechanism.schedule):
        raise InvalidInputError(
            f"There is a {mechanism.schedule} mechanism {mechanism.name!r} of {mechanism.trust!r} "
            f"already; choose another name."
        )
    _MECHANISMS.append(mechanism)


def load_encoder(data: "JsonObject") -> "Encoder":
    """The encoder that `Encoder.to_dict` described: all that a device has to call."""
    kind = str(_validate.description(data).get("encoder"))
    if kind not in _ENCODERS:
        raise UnknownNameError("encoder", kind, _ENCODERS)
    encoder: Encoder = _load(_ENCODERS[kind]).from_dict(data)
    return encoder


def _load(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module, _HOME), name)
