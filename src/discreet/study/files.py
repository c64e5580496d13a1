"""A study's files besides its own: policies, batch requests, and the reports that devices sent.

Reports come in three forms: a folder, one file each, as `discreet.device` writes them; one file of
such reports, one after the other (all of a batch have one length); or an array of integers,
``.npy``, for messages that a shuffler has mixed and for mechanisms that have no bytes of their own.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet._files import write_rows
from discreet._spelling import quoted
from discreet._types import IntArray, Plain
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, StudyError
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, Policy, StochasticPolicy
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.base import Encoder, WireEncoder
from discreet.study.estimate import Answer

FORMAT = "discreet-policy-1"
REQUEST = "discreet-batch-request-1"
_HOW = {
    DeterministicPolicy: "at each step, take the action of the state",
    StochasticPolicy: "at each step, draw the action of the state by its probability",
    MixturePolicy: "draw one component by its weight before the first step, and follow it to the "
    "end",
}


def rows_of(answer: Answer, names: Vocabulary) -> list[dict[str, Plain]]:
    """One row per step and state: what to do, whether it is the default, and the evidence.

    ``difference`` is what ``alternative`` earns more than the default from there on, with its
    ``standard_error``; both are None where nobody can say, and all three where nothing else is
    possible.
    """
    mask = names.shape.mask
    return [
        {
            "step": step,
            "state": state,
            "action": names.actions[int(answer.policy.actions[h, s])],
            "defer": bool(answer.defer[h, s]),
            "alternative": names.actions[int(answer.alternative[h, s])] if choice else None,
            "difference": float(answer.difference[h, s]) if known else None,
            "standard_error": float(answer.standard_error[h, s]) if known else None,
        }
        for h, step in enumerate(names.steps)
        for s, state in enumerate(names.states)
        for choice in (bool(mask[h, s].sum() > 1),)
        for known in (choice and bool(np.isfinite(answer.standard_error[h, s])),)
    ]


def request_rows(policy: Policy, names: Vocabulary) -> list[dict[str, Plain]]:
    """One row per step, state and action that a policy takes; of a mixture, per component."""
    if not isinstance(policy, MixturePolicy):
        return list(_steps(policy, names))
    weighed = zip(policy.components, policy.weights, strict=True)
    parts = [(i, float(weight), part) for i, (part, weight) in enumerate(weighed) if weight > 0]
    return [
        {"component": i, "weight": weight, **row}
        for i, weight, part in parts
        for row in _steps(part, names)
    ]


def how(policy: Policy) -> str:
    """How a user follows a policy, in one sentence."""
    return _HOW[type(policy)]


def _steps(
    policy: DeterministicPolicy | StochasticPolicy, names: Vocabulary
) -> Iterator[dict[str, Plain]]:
    chances = policy.distribution(names.shape)
    for h, s, a in np.argwhere(chances > 0).tolist():
        row = {"step": names.steps[h], "state": names.states[s], "action": names.actions[a]}
        yield {**row, "probability": float(chances[h, s, a])}


def save_policy(
    path: str | Path, answer: Answer, names: Vocabulary, guarantee: Guarantee, head: str
) -> None:
    """Write what was learnt as .json or .csv, with the guarantee of those it was learnt from."""
    about: dict[str, Plain] = {"head": head, "value": answer.value._asdict()}
    _write(path, FORMAT, rows_of(answer, names), guarantee, about)


def save_request(
    path: str | Path,
    policy: Policy,
    names: Vocabulary,
    guarantee: Guarantee,
    about: dict[str, Plain],
) -> None:
    """Write what the next users are asked to do as .json or .csv; ``about`` says which batch."""
    _write(path, REQUEST, request_rows(policy, names), guarantee, {**about, "how": how(policy)})


def _write(
    path: str | Path,
    form: str,
    rows: list[dict[str, Plain]],
    guarantee: Guarantee,
    about: dict[str, Plain],
) -> None:
    said: dict[str, Plain] = {"format": form, "guarantee": str(guarantee)}
    said["simulated"] = guarantee.simulated
    try:
        write_rows(path, rows, {**said, **about})
    except InvalidInputError as error:
        raise StudyError(str(error)) from None


WHOLE = (
    "reports came whole and not mixed, so whoever counted them saw who sent what and was the "
    "shuffler: the guarantee holds if that is not the analyser"
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
        if not isinstance(encoder, WireEncoder):
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


def _reports(path: Path, encoder: WireEncoder) -> Iterator[tuple[str, bytes]]:
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


def _row(encoder: WireEncoder, data: bytes, name: str) -> IntArray:
    try:
        return encoder.from_bytes(data)
    except InvalidInputError as error:
        raise StudyError(f"{quoted(name)} is refused: {error} Nothing was counted.") from None
