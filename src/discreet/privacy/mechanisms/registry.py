"""The mechanisms by name: who may use each, in which rhythm, and where its code is.

One table serves trust models, the audit, the command line and the loading of encoders. A mechanism
of your own is registered with `register` and is then chosen by its name, like any other.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from discreet.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from discreet.privacy.plans import Encoder

Rhythm = Literal["batch", "stream"]

_HOME = "discreet.privacy.mechanisms"
_FLIPS = "randomized_response:RandomizedResponse"


@dataclass(frozen=True)
class Mechanism:
    """One mechanism of one trust model in one rhythm.

    Attributes:
        trust: central, local, shuffle or none.
        rhythm: batch or stream.
        name: what a trust model calls it.
        home: the class of its plans, or ``"module:Class"``, inside this package unless the module
            has a dot. It has a classmethod ``calibrate(trust, shape, *, statistics, episodes,
            stationary)``, of the batch rhythm with ``last_transitions`` too.
        pure: it delivers delta = 0, whatever delta is asked for.
    """

    trust: str
    rhythm: Rhythm
    name: str
    home: str | type
    pure: bool = False

    def load(self) -> Any:
        """The class of its plans."""
        return _load(self.home) if isinstance(self.home, str) else self.home


_MECHANISMS: list[Mechanism] = [
    Mechanism("none", "batch", "none", "none:ExactBatch"),
    Mechanism("none", "stream", "none", "none:ExactStream"),
    Mechanism("central", "batch", "gaussian", "one_shot:GaussianBatch"),
    Mechanism("central", "batch", "laplace", "one_shot:LaplaceBatch", pure=True),
    Mechanism("central", "stream", "toeplitz", "toeplitz:ToeplitzStream"),
    Mechanism("central", "stream", "tree-gaussian", "tree:GaussianTree"),
    Mechanism("central", "stream", "tree-honaker", "tree:HonakerTree"),
    Mechanism("central", "stream", "tree-laplace", "tree:LaplaceTree", pure=True),
    Mechanism("central", "stream", "tree-iid", "tree:IidTree"),
    Mechanism("local", "batch", "split", "split:SplitBatch", pure=True),
    Mechanism("local", "batch", "one-step", "one_step:OneStepBatch", pure=True),
    Mechanism("local", "batch", "laplace", "local:LaplaceLocalBatch", pure=True),
    Mechanism("local", "batch", "gaussian", "local:GaussianLocalBatch"),
    Mechanism("local", "batch", "randomized-response", f"{_FLIPS}Batch", pure=True),
    Mechanism("local", "batch", "bounded", "local:BoundedLocalBatch"),
    Mechanism("local", "stream", "laplace", "local:LaplaceLocalStream", pure=True),
    Mechanism("local", "stream", "gaussian", "local:GaussianLocalStream"),
    Mechanism("local", "stream", "randomized-response", f"{_FLIPS}Stream", pure=True),
    Mechanism("local", "stream", "bounded", "local:BoundedLocalStream"),
    Mechanism("local", "stream", "one-step", "one_step:OneStepStream", pure=True),
    Mechanism("shuffle", "batch", "classes", "classes:ClassesBatch"),
    Mechanism("shuffle", "batch", "bits", "shuffle:ShuffleBatch"),
]
"""The first of a trust model and rhythm is its default."""

_ENCODERS = {
    "classes": "_devices:ClassesEncoder",
    "additive": "_encoders:AdditiveEncoder",
    "one-step": "_devices:OneStepEncoder",
    "randomized-response": "_devices:FlipEncoder",
    "shuffle-bits": "shuffle:ShuffleEncoder",
    "split": "_devices:SplitEncoder",
}


def mechanisms(trust: str, rhythm: Rhythm) -> dict[str, Mechanism]:
    """All of one trust model and rhythm by name, the default first.

    >>> list(mechanisms("central", "batch"))
    ['gaussian', 'laplace']
    """
    return {m.name: m for m in _MECHANISMS if (m.trust, m.rhythm) == (trust, rhythm)}


def everything() -> tuple[Mechanism, ...]:
    """Every mechanism of every trust model and rhythm."""
    return tuple(_MECHANISMS)


def register(mechanism: Mechanism) -> None:
    """Add a mechanism of your own.

    Raises:
        InvalidInputError: the trust model has one of this name in this rhythm.
    """
    if mechanism.name in mechanisms(mechanism.trust, mechanism.rhythm):
        raise InvalidInputError(
            f"There is a {mechanism.rhythm} mechanism {mechanism.name!r} of {mechanism.trust!r} "
            f"already; choose another name."
        )
    _MECHANISMS.append(mechanism)


def load_encoder(data: Mapping[str, Any]) -> "Encoder":
    """The encoder that `Encoder.to_dict` described: all that a device has to call."""
    kind = str(data.get("encoder"))
    if kind not in _ENCODERS:
        raise UnknownNameError("encoder", kind, _ENCODERS)
    encoder: Encoder = _load(_ENCODERS[kind]).from_dict(data)
    return encoder


def _load(home: str) -> Any:
    module, _, name = home.partition(":")
    where = module if "." in module else f"{_HOME}.{module}"
    return getattr(importlib.import_module(where), name)
