"""The `discreet` command, from its words to its exit code; the commands are in `_commands`.

Light on purpose: Typer alone takes longer to import than `discreet list` to answer.
"""

import os
import sys
import warnings
from typing import NoReturn

from discreet.cli import _answers
from discreet.cli._console import echo_json, noted, warn
from discreet.errors import DiscreetError

_KEPT = ("calibrate", "--help", "-h")
"""What answers to the same words with the same text (see `_answers`)."""


def main() -> NoReturn:
    """Entry point: errors raised on purpose become one sentence and exit code 2."""
    # Matrices are small and many: threads that wait for each other take several times as long,
    # above all on a busy machine. Whoever sets the variable is heard.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = noted()
            code = _answered(sys.argv[1:])
    except DiscreetError as error:
        _fail(str(error))
    except MemoryError:
        _fail("Not enough memory for a problem of this size; ask for fewer states or steps.")
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # who reads has read enough (`discreet list | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"Cannot use {str(error.filename)!r}: {error.strerror}; check path and permissions.")
    raise SystemExit(code if isinstance(code, int) else 0)


def _answered(words: list[str]) -> object:
    """Do what was asked for; an answer that does not change is said again."""
    if _is_plain_list(words):
        _plain_list(words[1:])
        return 0
    if not words or words[0] not in _KEPT:
        return _called()
    with _answers.kept(words) as known:
        return 0 if known else _called()


def _called() -> object:
    from discreet.cli import _commands

    return _commands.call()


def _is_plain_list(words: list[str]) -> bool:
    """`discreet list`, perhaps one section, perhaps as JSON: no parser is needed."""
    rest = [word for word in words[1:] if word != "--json"]
    return words[:1] == ["list"] and len(rest) <= 1 and not any(w.startswith("-") for w in rest)


def _plain_list(words: list[str]) -> None:
    from discreet.cli import _roster

    section = "".join(word for word in words if word != "--json")
    _roster.show(section, as_json="--json" in words)


def _fail(sentence: str) -> NoReturn:
    """One sentence; a script that asked for JSON gets it as JSON where it reads its answers."""
    if sentence.startswith("Usage:"):  # no arguments at all: the help
        sys.stderr.write(sentence + "\n")
    elif "--json" in sys.argv:
        echo_json({"error": sentence})
    else:
        warn(f"Error: {sentence}")
    raise SystemExit(2) from None
