"""What devices sent, from files: the reports of a batch as `Study.tell` takes them.

Three forms: a folder of reports, one file each, as `discreet.device` writes them; one file of such
reports, one after the other (all of a batch have one length); or an array of integers, ``.npy``,
for messages that a shuffler has mixed and for mechanisms that have no bytes of their own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet._spelling import quoted
from discreet._types import IntArray
from discreet.errors import InvalidInputError, StudyError
from discreet.privacy.mechanisms._devices import DeviceEncoder
from discreet.privacy.plans import Encoder

WHOLE = (
    "reports came whole and not mixed, so whoever counted them saw who sent what and was the "
    "shuffler: the promise holds if that is not the analyser"
)
"""What a ledger says of a batch under shuffle whose reports were not mixed on the way."""


def mixed(path: str | Path) -> bool:
    """Whether reports in this form can have been mixed: whole ones show what belongs together."""
    return Path(path).suffix.lower() == ".npy"


def read_reports(path: str | Path, encoder: Encoder) -> IntArray:
    """All reports of a batch, one below the other.

    Args:
        path: a folder, a file of reports, or an array.
        encoder: of the pending batch.
    """
    where = Path(path)
    try:
        if mixed(where):
            return _array(where)
        if not isinstance(encoder, DeviceEncoder):  # see `on_devices`
            raise StudyError(
                "Reports of this study's mechanism have no form as bytes; give them as an array of "
                "integers, .npy. Nothing was counted."
            )
        rows = [_row(encoder, data, name) for name, data in _reports(where, encoder)]
    except OSError as error:
        raise StudyError(
            f"Cannot read {str(where)!r}: {error.strerror}; nothing was counted."
        ) from None
    if not rows:
        raise StudyError(f"There are no reports in {str(where)!r}; nothing was counted.")
    return np.concatenate(rows)


def on_devices(encoder: Encoder) -> bool:
    """True if `discreet.device` runs it: reports have a form as bytes."""
    return isinstance(encoder, DeviceEncoder)


def read_names(path: str | Path) -> list[str]:
    """Users, one name per line."""
    where = Path(path)
    try:
        lines = where.read_text("utf-8-sig").split("\n")  # a form feed ends no name
    except OSError as error:
        raise StudyError(
            f"Cannot read {str(where)!r}: {error.strerror}; nothing was counted."
        ) from None
    except UnicodeError:
        raise StudyError(
            f"Expected one name per line in UTF-8, got other bytes in {str(where)!r}; nothing was "
            f"counted."
        ) from None
    return [line for line in lines if line.strip()]


def _array(path: Path) -> IntArray:
    try:
        found = np.load(path, allow_pickle=False)
    except ValueError:
        found = None
    if not isinstance(found, np.ndarray) or not np.issubdtype(found.dtype, np.integer):
        raise StudyError(
            f"Expected an array of integers in {str(path)!r}, got something else; nothing was "
            f"counted."
        )
    return np.asarray(found, np.int64)


def _reports(path: Path, encoder: DeviceEncoder[Any]) -> Iterator[tuple[str, bytes]]:
    """Where each report is, and its bytes."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        yield from ((p.name, p.read_bytes()) for p in files)
        return
    data, length = path.read_bytes(), encoder.length
    if len(data) % length:
        raise StudyError(
            f"Expected reports of {length} bytes each in {str(path)!r}, got {len(data)} bytes; "
            f"nothing was counted."
        )
    for first in range(0, len(data), length):
        yield f"report {first // length}", data[first : first + length]


def _row(encoder: DeviceEncoder[Any], data: bytes, name: str) -> IntArray:
    try:
        return encoder.from_bytes(data)
    except InvalidInputError as error:
        raise StudyError(f"{quoted(name)} is refused: {error} Nothing was counted.") from None
