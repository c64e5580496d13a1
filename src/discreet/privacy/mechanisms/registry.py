"""The mechanisms by name: who may use each, in which schedule, and where its code is.

One table serves trust models, the audit, the command line and the loading of encoders. A mechanism
of your own is registered with `register`, or is an entry point ``discreet.mechanisms`` of a
package (``"central.batch.mine" = "my_package.noise:MineBatch"``); it is then chosen by its name,
like any other.
"""

import functools
import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from discreet import _registry, _validate
from discreet.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from discreet._types import JsonObject
    from discreet.privacy.plans import Encoder

Schedule = Literal["batch", "continual"]

_HOME = "discreet.privacy.mechanisms"
_TRUSTS = ("central", "local", "shuffle")
_FLIPS = ".randomized_response:RandomizedResponse"


@dataclass(frozen=True)
class MechanismSpec:
    """One mechanism of one trust model in one schedule.

    Attributes:
        trust: central, local, shuffle or none.
        schedule: batch or stream.
        name: what a trust model calls it.
        home: the class of its plans, or ``"module:Class"``, in this package if the module begins
            with a dot. It has a classmethod ``calibrate(trust, shape, *, statistics, episodes,
            stationary)``, of the batch schedule with ``last_transitions`` too.
        pure: it delivers delta = 0, whatever delta is asked for.
        randomises: data themselves, instead of adding noise to counters.
        losses: a stream whose noise also serves the losses of adversarial learners, which are no
            units: its composition is known for moves of any size.
    """

    trust: str
    schedule: Schedule
    name: str
    home: str | type
    pure: bool = False
    randomises: bool = False
    losses: bool = False

    def load(self) -> Any:
        """The class of its plans.

        Raises:
            InvalidInputError: the package of a plug-in cannot be imported.
        """
        if self.ours or not isinstance(self.home, str):
            return _load(self.home) if isinstance(self.home, str) else self.home
        try:
            return _load(self.home)
        except _registry.FAILURES as error:
            raise InvalidInputError(
                f"The mechanism {self.name!r} cannot be loaded from {self.home!r}: "
                f"{type(error).__name__}: {error}. Repair its package, or uninstall it."
            ) from error

    @property
    def ours(self) -> bool:
        """Whether discreet ships it."""
        return isinstance(self.home, str) and self.home.startswith(".")

    @property
    def summary(self) -> str:
        """The first line of its class's docstring; one of ours is not loaded for it."""
        home = self.home if isinstance(self.home, str) else ""
        module, _, name = home.partition(":")
        if module.startswith("."):
            return _registry.first_line(_HOME + module, name)
        try:
            return (inspect.getdoc(self.load()) or "").split("\n")[0]
        except InvalidInputError:
            return "(not available)"


_MECHANISMS: list[MechanismSpec] = [
    MechanismSpec("none", "batch", "none", ".none:ExactBatch"),
    MechanismSpec("none", "continual", "none", ".none:ExactStream"),
    MechanismSpec("central", "batch", "gaussian", ".one_shot:GaussianBatch"),
    MechanismSpec("central", "batch", "laplace", ".one_shot:LaplaceBatch", pure=True),
    MechanismSpec("central", "continual", "toeplitz", ".toeplitz:ToeplitzStream", losses=True),
    MechanismSpec("central", "continual", "tree-gaussian", ".tree:GaussianTree", losses=True),
    MechanismSpec("central", "continual", "tree-honaker", ".tree:HonakerTree", losses=True),
    MechanismSpec(
        "central", "continual", "tree-laplace", ".tree:LaplaceTree", pure=True, losses=True
    ),
    MechanismSpec("central", "continual", "tree-iid", ".tree:IidTree", losses=True),
    MechanismSpec("local", "batch", "split", ".split:SplitBatch", pure=True, randomises=True),
    MechanismSpec(
        "local", "batch", "one-step", ".one_step:OneStepBatch", pure=True, randomises=True
    ),
    MechanismSpec("local", "batch", "laplace", ".local:LaplaceLocalBatch", pure=True),
    MechanismSpec("local", "batch", "gaussian", ".local:GaussianLocalBatch"),
    MechanismSpec(
        "local", "batch", "randomized-response", f"{_FLIPS}Batch", pure=True, randomises=True
    ),
    MechanismSpec("local", "batch", "bounded", ".local:BoundedLocalBatch"),
    MechanismSpec(
        "local", "continual", "laplace", ".local:LaplaceLocalStream", pure=True, losses=True
    ),
    MechanismSpec("local", "continual", "gaussian", ".local:GaussianLocalStream", losses=True),
    MechanismSpec(
        "local", "continual", "randomized-response", f"{_FLIPS}Stream", pure=True, randomises=True
    ),
    MechanismSpec("local", "continual", "bounded", ".local:BoundedLocalStream"),
    MechanismSpec(
        "local", "continual", "one-step", ".one_step:OneStepStream", pure=True, randomises=True
    ),
    MechanismSpec("shuffle", "batch", "histogram", ".histogram:HistogramBatch"),
    MechanismSpec("shuffle", "batch", "bits", ".shuffle:ShuffleBatch"),
]
"""The first of a trust model and schedule is its default."""

_ENCODERS = {
    "histogram": "._devices:HistogramEncoder",
    "additive": "._encoders:AdditiveEncoder",
    "one-step": "._devices:OneStepEncoder",
    "randomized-response": "._devices:FlipEncoder",
    "shuffle-bits": ".shuffle:ShuffleEncoder",
    "split": "._devices:SplitEncoder",
}


def mechanisms(trust: str, schedule: Schedule) -> dict[str, MechanismSpec]:
    """All of one trust model and schedule by name, the default first.

    >>> list(mechanisms("central", "batch"))
    ['gaussian', 'laplace']
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


def _of_plugin(name: str, home: str) -> MechanismSpec:
    """What an entry point ``trust.schedule.name`` says; its class is loaded when it is used."""
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
    return MechanismSpec(trust, cast(Schedule, schedule), own, home)


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


def _load(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(module, _HOME), name)
