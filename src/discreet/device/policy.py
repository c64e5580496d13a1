"""A learnt policy where decisions are made; the standard library alone, `web/policy.js` its twin.

The file is what `discreet fit --output` and `discreet study policy --output` write as JSON: an
object with ``format`` (one of `FORMATS`, if it is there), ``guarantee`` (one sentence),
``simulated`` (true: a rehearsal, not for people) and ``policy``, a list of objects with ``step``,
``state`` and ``action``, all texts. ``DEFER`` as an action, or ``"defer": true`` beside one, says
that the evidence does not exceed two standard errors: whoever decides today decides.
"""

import json
from pathlib import Path

DEFER = "DEFER"
FORMATS = ("discreet-fit-1", "discreet-policy-1")


class LoadedPolicy:
    """What to do at each step and in each state, by name or by number.

    A number counts from 0. Where names are numbers that count otherwise ("1", "2", "3"), it could
    be either, and is refused.

    Attributes:
        states, steps: their names, in the order of the file, which numbers count.
        guarantee: of the people that it was learnt from.
        simulated: a rehearsal; not to be used for people.
    """

    def __init__(self, content: object) -> None:
        rows = content.get("policy") if isinstance(content, dict) else None
        if not isinstance(content, dict) or not isinstance(rows, list) or not rows:
            raise ValueError(
                "Expected a policy as `discreet fit --output FILE.json` writes it, an object with "
                "a list 'policy'; got something else."
            )
        if content.get("format", FORMATS[0]) not in FORMATS:
            raise ValueError(
                f"Expected the format {' or '.join(FORMATS)}, got {content['format']!r}: the file "
                f"is of another version of discreet."
            )
        self._actions: dict[tuple[str, str], tuple[str, bool]] = {}
        for number, row in enumerate(rows):
            named = row if isinstance(row, dict) else {}
            step, state, action = (named.get(key) for key in ("step", "state", "action"))
            if not (isinstance(step, str) and isinstance(state, str) and isinstance(action, str)):
                raise ValueError(
                    f"Expected texts 'step', 'state' and 'action' in row {number}, got {row!r}."
                )
            if not isinstance(named.get("defer", False), bool):
                raise ValueError(
                    f"Expected true or false as 'defer' in row {number}, got {named['defer']!r}."
                )
            if (step, state) in self._actions:
                raise ValueError(f"Expected step {step!r} with state {state!r} once, got it twice.")
            self._actions[step, state] = action, action == DEFER or named.get("defer") is True
        self.steps = tuple(dict.fromkeys(step for step, _ in self._actions))
        self.states = tuple(dict.fromkeys(state for _, state in self._actions))
        if len(self._actions) != len(self.steps) * len(self.states):
            raise ValueError(
                f"Expected {len(self.steps)} steps times {len(self.states)} states, got "
                f"{len(self._actions)} rows; the file is not whole."
            )
        self.guarantee = str(content.get("guarantee", ""))
        self.simulated = content.get("simulated") is True

    def defers(self, state: str | int, step: str | int) -> bool:
        """Whether whoever decides today should decide here."""
        return self._row(state, step)[1]

    def action(self, state: str | int, step: str | int, *, fallback: str | None = None) -> str:
        """What to do.

        Args:
            state: by name, or by number from 0.
            step: likewise.
            fallback: what is done today, for where the policy DEFERs. Left out: the default action
                of the study; a policy of ``fit`` has none, and DEFER is the answer.
        """
        action, defers = self._row(state, step)
        return fallback if defers and fallback is not None else action

    def _row(self, state: str | int, step: str | int) -> tuple[str, bool]:
        return self._actions[_name(step, self.steps, "step"), _name(state, self.states, "state")]


def _name(given: str | int, names: tuple[str, ...], what: str) -> str:
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(names):
        if str(given) in names and names[given] != str(given):
            raise ValueError(
                f"Expected a {what} that means one thing, got {given}: as a number from 0 it is "
                f"{names[given]!r}, and {str(given)!r} is another's name; give the name as text."
            )
        return names[given]
    if isinstance(given, str) and given in names:
        return given
    shown = ", ".join(names[:8]) + ", ..." * (len(names) > 8)
    raise ValueError(f"Expected a {what} among {shown}, or its number from 0, got {given!r}.")


def load_policy(path: str | Path) -> LoadedPolicy:
    """Read a policy that `discreet fit` or a study has written as JSON."""
    try:
        content = json.loads(Path(path).read_text("utf-8"), object_pairs_hook=_once)
    except OSError as error:
        raise ValueError(f"Expected a file that can be read, got {path}: {error}.") from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else error
        raise ValueError(
            f"Expected the policy as JSON, got {str(path)!r}, which is not ({reason}); write it "
            f"with `--output policy.json`."
        ) from None
    return LoadedPolicy(content)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"a key stands twice: {', '.join(key for key, _ in pairs)}")
    return made
