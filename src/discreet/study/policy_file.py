"""A study's policies as files: what it has learnt, and what it asks the next users to do."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet._outputs import write_rows
from discreet._plain import Plain
from discreet.errors import InvalidInputError, StudyError
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, Policy, StochasticPolicy
from discreet.mdp.vocabulary import Vocabulary
from discreet.privacy.guarantee import Guarantee
from discreet.study.knowledge import Answer

FORMAT = "discreet-policy-1"
QUESTION = "discreet-question-1"
_HOW = {
    DeterministicPolicy: "at each step, take the action of the state",
    StochasticPolicy: "at each step, draw the action of the state by its probability",
    MixturePolicy: "draw one component by its weight before the first step, and follow it to the "
    "end",
}


def rows_of(answer: Answer, names: Vocabulary) -> list[dict[str, Plain]]:
    """One row per step and state: what to do, and whether that rests on data."""
    rows = list[dict[str, Plain]]()
    for h, step in enumerate(names.steps):
        for s, state in enumerate(names.states):
            action = names.actions[int(answer.policy.actions[h, s])]
            known = bool(answer.known[h, s])
            rows.append({"step": step, "state": state, "action": action, "known": known})
    return rows


def question_rows(policy: Policy, names: Vocabulary) -> list[dict[str, Plain]]:
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


def save(
    path: str | Path, answer: Answer, names: Vocabulary, guarantee: Guarantee, head: str
) -> None:
    """Write a policy; the ending of ``path`` says how.

    Args:
        path: ends in .json or .csv.
        answer: what the study knows.
        names: of states, actions and steps.
        guarantee: what was promised to those it was learnt from.
        head: of the study.
    """
    about = {**_promise(FORMAT, guarantee), "head": head, "value": answer.value._asdict()}
    _write(path, rows_of(answer, names), about)


def save_question(
    path: str | Path,
    policy: Policy,
    names: Vocabulary,
    guarantee: Guarantee,
    about: dict[str, Plain],
) -> None:
    """Write what the next users are asked to do; the ending of ``path`` says how.

    Args:
        path: ends in .json or .csv.
        policy: of the pending batch.
        names: of states, actions and steps.
        guarantee: what is promised to them.
        about: which batch it is.
    """
    said = {**_promise(QUESTION, guarantee), **about, "how": how(policy)}
    _write(path, question_rows(policy, names), said)


def _promise(form: str, guarantee: Guarantee) -> dict[str, Plain]:
    return {"format": form, "guarantee": str(guarantee), "simulated": guarantee.simulated}


def _write(path: str | Path, rows: list[dict[str, Plain]], about: dict[str, Plain]) -> None:
    try:
        write_rows(path, rows, about)
    except InvalidInputError as error:
        raise StudyError(str(error)) from None
