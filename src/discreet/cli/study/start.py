"""`discreet study start`: all is checked, what will be promised is printed, one file is made."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._options import Json, grouped
from discreet.cli._output import Progress, say, warn_of_promise
from discreet.cli.study._design import DesignOptions, Rehearsal
from discreet.cli.study._shared import StudyFile, answer, counted, facts_of, key_rows

if TYPE_CHECKING:
    from discreet.study.study import Study


@dataclass(frozen=True)
class Course:
    """Options on who learns, and from how many."""

    learner: Annotated[
        str | None, typer.Option(help="Of `discreet list`; flow-ucb if nobody says otherwise.")
    ] = None
    episodes: Annotated[str | None, typer.Option(help="Users in all, e.g. 20000 or 2e4.")] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the learner, name=value.")
    ] = None

    def given(self) -> dict[str, Any]:
        """What somebody typed, as a design says it."""
        from discreet.cli._options import parse_settings, parse_value

        found: dict[str, Any] = {} if self.learner is None else {"learner": self.learner}
        if self.episodes is not None:
            found["episodes"] = parse_value(self.episodes)
        return {**found, "settings": parse_settings(self.settings or [])}


def begin(
    file: StudyFile,
    design: DesignOptions,
    course: Course,
    rehearsal: Rehearsal,
    json: Json = False,
) -> None:
    """Begin a study: all is checked now, and what will be promised is printed."""
    from discreet.study.study import start

    arguments = design.read(course.given()).arguments()
    trust = arguments["trust"]
    warn_of_promise(getattr(trust, "epsilon", None), getattr(trust, "delta", None))
    with Progress(quiet=json, verb="calibrating") as progress:
        progress("the noise")
        study = start(file, **arguments, **rehearsal.arguments())
    _show(study, json=json)


command = grouped(begin)


def _show(study: "Study", *, json: bool) -> None:
    prospect, guarantee = study.prospect, study.guarantee
    plain = {**facts_of(study), "users_needed": prospect.users_needed, "token": study.token}
    rows = [
        ("promised to every user", str(guarantee)),
        *(("assumed" if not i else "", text) for i, text in enumerate(guarantee.assumptions)),
        ("what to expect", prospect.needed),
        ("first batch", counted(study.batch_size, "user")),
        *key_rows(study),
        ("head", study.head),
    ]
    answer(plain, f"Study {study.path} begins", rows, json=json)
    if not json:
        say(f"Next: discreet study ask {study.path}")
