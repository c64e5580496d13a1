"""What runs at a user's: the Python standard library alone, nothing else of discreet.

``load`` takes the public description of a batch (`Encoder.to_dict` as JSON) and gives the encoder;
its JavaScript twin is in ``web/device.js`` and makes the same bytes from the same randomness.
"""

from discreet.device.description import DeviceError, bad
from discreet.device.draws import ByteDraws, Draws
from discreet.device.histogram import (
    HistogramDevice,
    MessageGroup,
    cell_from_bytes,
    cell_to_bytes,
)
from discreet.device.local import SplitDevice
from discreet.device.wire import ENVELOPE, Device, Report

__all__ = [
    "ENVELOPE",
    "ByteDraws",
    "Device",
    "DeviceError",
    "Draws",
    "HistogramDevice",
    "MessageGroup",
    "Report",
    "SplitDevice",
    "cell_from_bytes",
    "cell_to_bytes",
    "load",
]

_ENCODERS: dict[str, type[Device]] = {
    device.name: device for device in (HistogramDevice, SplitDevice)
}


def load(description: object) -> Device:
    """The encoder that a public description asks for.

    >>> batch = {"version": 1, "encoder": "histogram", "states": 1, "actions": 1, "horizon": 1,
    ...          "policy": [[0]], "statistics": ["rewards"], "last_transitions": False,
    ...          "users": 100, "lambda": [50, 1]}
    >>> report = load(batch).encode({"states": [0, 0], "actions": [0], "rewards": [0.5]})
    >>> [len(cells) for cells in report]
    [3]
    """
    if not isinstance(description, dict):
        raise bad("Expected a dictionary.")
    kind = description.get("encoder")
    if not isinstance(kind, str) or kind not in _ENCODERS:
        raise DeviceError("unknownEncoder", f"Expected an encoder among {', '.join(_ENCODERS)}.")
    return _ENCODERS[kind](description)
