"""`discreet study`: the life of a study on the command line; a group of commands is one Typer."""

import json as json_text
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer import Option

from discreet._files import TABLES
from discreet._types import JsonObject, Plain
from discreet.cli.options import (
    Force,
    Head,
    Json,
    grouped,
    parse_settings,
    parse_value,
    users_option,
)
from discreet.cli.output import (
    Progress,
    Table,
    answer,
    check_target,
    facts,
    warn,
    warn_of_guarantee,
)
from discreet.errors import InvalidInputError, StudyError

if TYPE_CHECKING:
    from discreet.study.design import Design
    from discreet.study.study import Returning, Study

app = typer.Typer(
    help="Run a study with real people: start, then ask and tell for each batch, then bundle.",
    no_args_is_help=True,
)

StudyFile = Annotated[Path, typer.Argument(help="The study's file.", show_default=False)]
Text = str | None
"""An option that may be left out."""
_SHOWN = 40
"""Entries of the ledger in a table; --json has all of them."""


@dataclass(frozen=True)
class DesignOptions:
    """A design file; every other option holds instead of what the file says."""

    design: Annotated[
        Path | None, Option(help="The design, a TOML file with names, trust and table.")
    ] = None
    states: Annotated[Text, Option(help="Number of states, or names separated by commas.")] = None
    actions: Annotated[Text, Option(help="Number of actions, or names separated by commas.")] = None
    steps: Annotated[Text, Option(help="Steps per episode, or names separated by commas.")] = None
    start: Annotated[
        Text, Option(help="States in which episodes can begin, if they are public.")
    ] = None
    stationary: Annotated[
        bool,
        Option(
            "--stationary", help="Declare that rewards and transitions are the same at all steps."
        ),
    ] = False
    trust: Annotated[Text, Option(help="central, local, shuffle or none.")] = None
    epsilon: Annotated[float | None, Option(help="Epsilon of the guarantee.")] = None
    delta: Annotated[
        float | None, Option(help="Delta of the guarantee. 0 asks for pure differential privacy.")
    ] = None
    mechanism: Annotated[Text, Option(help="Mechanism of the release. Left out: the best one.")] = (
        None
    )
    participations: Annotated[
        int | None,
        Option(help="How many episodes of one person are protected together. Left out: 1."),
    ] = None
    honest: Annotated[
        float | None, Option(help="Shuffle: the fraction of users who add their noise honestly.")
    ] = None

    def read(self, more: "dict[str, Any] | None" = None) -> "Design":
        """The file's design with what was typed; ``more`` is what the command adds."""
        from discreet.study.design import Design, read_design

        written = Design() if self.design is None else read_design(self.design)
        given: dict[str, Any] = {
            "states": _names(self.states),
            "actions": _names(self.actions),
            "steps": _names(self.steps),
            "start_states": None if self.start is None else _list(self.start),
            "stationary": self.stationary or None,
            **(more or {}),
        }
        given["trust"] = self.over(dict(written.trust))
        given["settings"] = {**written.settings, **given.get("settings", {})}
        typed = {name: value for name, value in given.items() if value is not None}
        return replace(written, **typed)

    def over(self, trust: JsonObject) -> dict[str, Plain]:
        """Another trust model has other options: those of the file are then not its own."""
        if self.trust is not None and self.trust != trust.get("model"):
            kept = () if self.trust == "none" else ("epsilon", "delta")
            shared = {name: value for name, value in trust.items() if name in kept}
            trust = {"model": self.trust, **shared}
        names = ("epsilon", "delta", "mechanism", "participations", "honest")
        given = {name: getattr(self, name) for name in names}
        return {**trust, **{name: value for name, value in given.items() if value is not None}}


def design(
    table: Annotated[
        Path, typer.Argument(help="A table: CSV, Excel or Parquet.", show_default=False)
    ],
    output: Annotated[Path, Option(help="The file to write.")] = Path("design.toml"),
    states: Annotated[Text, Option(help="Number of states, or names separated by commas.")] = None,
    actions: Annotated[
        Text, Option(help="Number of actions, or names separated by commas.")
    ] = None,
    steps: Annotated[Text, Option(help="Steps per episode, or names separated by commas.")] = None,
    reward_range: Annotated[
        Text, Option(metavar="LOW,HIGH", help="The least and the largest possible reward.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        Option("--column", help="A column of the table by its role, for example user=id."),
    ] = None,
    sheet: Annotated[Text, Option(help="The sheet, if a workbook has several.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a first design for a table by its header; you fill in what is public.

    No row is read: states and ranges that are looked up in the table are facts about its people,
    and looking is not private.
    """
    from discreet._files import write_text
    from discreet.data.layout import check_roles
    from discreet.data.tables import read_header
    from discreet.data.vocabulary import check_names
    from discreet.study.design import read_design
    from discreet.study.draft import first_design

    check_target(output, ".toml", force=force, inputs=[table])
    header, form = read_header(table, sheet)
    roles = {role: str(name) for role, name in parse_settings(columns or [], "--column").items()}
    check_roles(roles)
    known = {"states": _names(states), "actions": _names(actions), "steps": _names(steps)}
    for kind, value in known.items():
        if value is not None:
            check_names(value, kind)
    known |= {"reward_range": _range(reward_range), "columns": roles}
    text = first_design(table.name, header, form, known)
    write_text(output, text)
    blanks = read_design(output).blanks
    empty = (
        f"Fill in what is empty: {', '.join(blanks)}. Look it up in the protocol, not in the "
        f"table: looking at people's data for states or ranges is not private."
    )
    shown = [
        f"{output}: a first design for {table}, by its header ({len(header)} columns) alone.",
        *([empty] if blanks else []),
        "Look at [table.columns], which is guessed from the columns' names.",
        f"Next: {'when nothing is empty, ' * bool(blanks)}discreet check table {table} --design "
        f"{output}",
    ]
    plain = {"design": str(output), "header": header, "format": form, "blanks": blanks}
    answer(plain, shown, json=json)


def _range(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        low, high = (float(number) for number in text.split(","))
        if not -math.inf < low < high < math.inf:
            raise ValueError(text)
    except ValueError:
        raise InvalidInputError(
            f"Expected --reward-range as LOW,HIGH such as 0,100, got {text!r}."
        ) from None
    return [low, high]


@dataclass(frozen=True)
class Rehearsal:
    """Options on whom the noise protects."""

    rehearse: Annotated[
        bool,
        Option("--rehearse", help="Use seeded noise, for a rehearsal. It protects nobody."),
    ] = False
    seed: Annotated[int | None, Option(help="Seed of a rehearsal.")] = None

    def arguments(self) -> dict[str, Any]:
        """The keywords of `discreet.start_study` and `discreet.fit`."""
        if self.seed is not None and not self.rehearse:
            raise InvalidInputError(
                f"Noise that protects people cannot be seeded, got --seed {self.seed}; leave it "
                f"out, or give --rehearse."
            )
        return {"sampler": "simulation" if self.rehearse else "secure", "seed": self.seed}


@dataclass(frozen=True)
class Learning:
    """Options on who learns, and from how many."""

    learner: Annotated[
        Text, Option(help="A learner of `discreet list`. Left out: the design's, or flow-ucb.")
    ] = None
    episodes: Annotated[Text, Option(help="Number of users in all, for example 20000 or 2e4.")] = (
        None
    )
    batches: Annotated[int | None, Option(help="The largest number of recruitments.")] = None
    settings: Annotated[
        list[str] | None, Option("--set", help="A setting of the learner, name=value.")
    ] = None

    def given(self) -> dict[str, Any]:
        """What somebody typed, as a design says it."""
        found: dict[str, Any] = {} if self.learner is None else {"learner": self.learner}
        if self.episodes is not None:
            found["episodes"] = parse_value(self.episodes)
        if self.batches is not None:
            found["batches"] = self.batches
        return {**found, "settings": parse_settings(self.settings or [])}


@app.command()
@grouped
def start(
    file: StudyFile,
    design: DesignOptions,
    learning: Learning,
    rehearsal: Rehearsal,
    json: Json = False,
) -> None:
    """Begin a study. Everything is checked first, and the guarantee is printed."""
    from discreet.study.study import Study

    given = replace(design.read(learning.given()), **rehearsal.arguments())
    trust = given.checked().trust_model
    warn_of_guarantee(getattr(trust, "epsilon", None), getattr(trust, "delta", None))
    with Progress(quiet=json, verb="calibrating") as progress:
        progress("the noise")
        study = Study.begin(file, given)
        progress("what to expect")
        expected = study.expected
    plain = {
        **_facts(study),
        "settings": study.settings,
        "expected": expected._asdict(),
        "token": study.token,
    }
    rows = [
        *_guarantee_rows(study),
        ("what to expect", expected.sentence),
        ("first batch", counted(study.batch_size, "user")),
        ("head", study.head),
    ]
    then = f"Next: discreet study ask {study.path}"
    answer(plain, [facts(f"Study {study.path} begins", rows), then], json=json)


@app.command()
def ask(
    file: StudyFile,
    policy: Annotated[Path | None, Option(help="Write the policy here, .json or .csv.")] = None,
    encoder: Annotated[
        Path | None,
        Option(help="Local and shuffle: write what devices need to this file, .json."),
    ] = None,
    force: Force = False,
    head: Head = None,
    json: Json = False,
) -> None:
    """Show the policy for the next users. It stays the same until their data are told."""
    from discreet._files import write_text
    from discreet.study.files import how, request_rows

    if policy is not None:
        check_target(policy, *TABLES, force=force, inputs=[file, encoder])
    if encoder is not None:
        check_target(encoder, ".json", force=force, inputs=[file])
    study = _opened(file, head, to_read=True)
    asked = study.ask()
    if encoder is not None and not study.encoded:
        raise StudyError(
            "This study is central: its users hand over episodes and need no encoder; leave out "
            "--encoder."
        )
    if policy is not None:
        study.save_request(policy)
    if encoder is not None:
        write_text(encoder, json_text.dumps(study.encoder().to_dict(), indent=1) + "\n")
    rows = request_rows(asked, study.names)
    written = {"policy": policy, "encoder": encoder}
    plain = {
        "study": str(study.path),
        **_guaranteed(study),
        "batch": study.batches,
        "users": study.batch_size,
        "token": study.token,
        "how": how(asked),
        "policy": rows,
        "encoder": dict(study.encoder().to_dict()) if study.encoded else None,
        "written": {name: str(path) for name, path in written.items() if path is not None},
        "head": study.head,
    }
    title = f"Batch {study.batches} of {study.path}: {counted(study.batch_size, 'user')}"
    shown: list[Table | str] = [f"{title}. Policy: {policy}. {study.guarantee}"]
    if policy is None:
        shown = [_policy_table(title, study, rows)]
    shown.append(f"How: {how(asked)}.")
    if encoder is not None:
        shown.append(f"Encoder for their devices: {encoder}")
    if study.encoded:
        shown.append(f"Token, to be told with the reports: {study.token}")
    answer(plain, shown, json=json)


@app.command()
def tell(
    file: StudyFile,
    data: Annotated[
        Path,
        typer.Argument(
            help="Central: a CSV or Parquet file. Local and shuffle: a folder of reports, a file "
            "of reports, or an array of integers (.npy).",
            show_default=False,
        ),
    ],
    users: Annotated[
        Path | None,
        Option(help="With reports: a text file of the users' names, one per line."),
    ] = None,
    token: Annotated[Text, Option(help="With reports: the token that `study ask` printed.")] = None,
    show_dropped_out: Annotated[
        bool,
        Option(
            "--show-dropped-out",
            help="Central: show how many people left the policy. This is raw data.",
        ),
    ] = False,
    head: Head = None,
    json: Json = False,
) -> None:
    """Count the data of the pending batch, once. If anything is wrong, nothing counts."""
    from discreet.study.files import WHOLE, mixed

    study = _opened(file, head)
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(data))
        told, people = _told(study, data, users)
    # What the ledger shall say: under shuffle, who was trusted with whole reports.
    whole = study.mechanism.guarantee.notion == "SDP" and not mixed(data)
    note = {"reports": WHOLE} if whole else {}
    with Progress(quiet=json, verb="counting") as progress:
        progress(counted(len(people), "user"))
        look = _look if show_dropped_out else None
        study.tell(told, users=people, token=token, dropped_out=look, note=note)
    rows = [
        ("counted now", counted(len(people), "user")),
        ("counted in all", f"{study.users:,} of {study.episodes:,} users"),
        ("guaranteed to each", str(study.guarantee)),
        *((f"note: {name}", text) for name, text in note.items()),
        *_worth(study),
        ("head", study.head),
    ]
    plain = {**_facts(study), "counted": len(people), "note": note}
    then = f"Next: discreet study {'bundle' if study.finished else 'ask'} {study.path}"
    noted = f"Note the head, away from the file. {then}"
    answer(plain, [facts(f"Study {study.path}", rows), noted], json=json)


def _told(study: "Study", data: Path, users: Path | None) -> tuple[Any, list[str]]:
    """What `Study.tell` takes, from files."""
    from discreet.study.files import read_names

    if not study.encoded:
        if users is not None:
            raise StudyError(
                "In a central study the table names its users; leave out --users. Nothing was "
                "counted."
            )
        return study.read_table(data)
    if data.suffix.lower() in (".csv", ".parquet", ".pq"):
        raise StudyError(
            f"Expected reports, got the table {data.name!r}: nobody sees raw episodes under "
            f"{study.guarantee.notion}. Each device encodes its own (`study ask --encoder`), and "
            f"tell takes what they send. Nothing was counted."
        )
    if users is None:
        raise StudyError(
            "Reports do not say whose they are; name the users with --users FILE, one per line. "
            "Nothing was counted."
        )
    return study.read_reports(data), read_names(users)


def _look(left: int) -> None:
    """For the eyes of the trusted operator: never on standard output, which scripts keep."""
    warn(f"{left:,} users left the policy (raw data: do not write it down).")


@app.command()
def show(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """Show a study: guarantee, users, value, head and the entries of its ledger."""
    study = _opened(file, head, to_read=True)
    entries = study.ledger
    state = study.ending or f"next batch {counted(study.batch_size, 'user')}"
    rows = [
        *_guarantee_rows(study),
        ("users", f"{study.users:,} of {study.episodes:,} in {counted(study.batches, 'batch')}"),
        ("state", state),
        *_worth(study),
        *(("note", note) for note in study.notes),
        ("head", study.head),
    ]
    names = ("number", "kind", "users", "asked", "policy")
    last = [{"asked": e.get("episodes", ""), **e} for e in entries[-_SHOWN:]]
    ledger = Table(
        "Ledger" if len(entries) <= _SHOWN else f"Ledger, last {_SHOWN} of {len(entries):,}",
        ("number", "what", "users", "asked", "policy"),
        [[str(entry.get(name, "")) for name in names] for entry in last],
        right=(0, 2, 3),
        caption=str(study.guarantee),
    )
    plain = {**_facts(study), "ledger": entries}
    answer(plain, [facts(f"Study {file}", rows), ledger], json=json)


@app.command()
def policy(
    file: StudyFile,
    output: Annotated[Path | None, Option(help="Write it here, .json or .csv.")] = None,
    force: Force = False,
    head: Head = None,
    json: Json = False,
) -> None:
    """Show the recommended policy, with its evidence, and where the default stays (defer)."""
    from discreet.study.files import rows_of

    if output is not None:
        check_target(output, *TABLES, force=force, inputs=[file])
    study = _opened(file, head, to_read=True)
    found = study.answer
    rows = rows_of(found, study.names)
    if output is not None:
        study.save_policy(output)
    plain = {
        "study": str(file),
        **_guaranteed(study),
        "value": found.value._asdict(),
        "today": found.today._asdict(),
        "reward_range": list(study.reward_range),
        "notes": list(study.notes),
        "policy": rows,
        "output": None if output is None else str(output),
        "head": study.head,
    }
    worth = f"worth {study.said(found.value)}; today {study.said(found.today)}"
    table = _policy_table(f"Policy of {file}, {worth}", study, rows)
    shown = table if output is None else f"{output}: {worth}. {study.guarantee}"
    answer(plain, [shown, *(f"Note: {note}" for note in study.notes)], json=json)


@app.command()
def bundle(
    file: StudyFile,
    output: Annotated[
        Path | None, Option(help="The file to write, .zip. Left out: beside the study.")
    ] = None,
    force: Force = False,
    head: Head = None,
    json: Json = False,
) -> None:
    """Write a zip file with the dossier and everything that a reviewer needs to check it."""
    study = _opened(file, head, to_read=True)
    where = file.with_suffix(".zip") if output is None else output
    check_target(where, ".zip", force=force, inputs=[file])
    with Progress(quiet=json) as progress:
        digest = study.bundle(where, progress)
    plain = {"study": str(file), "bundle": str(where), "sha256": digest, **_guaranteed(study)}
    shown = [
        f"{where}: {study.guarantee}",
        f"SHA-256 {digest}",
        f"It is about the head {study.head}",
        "Tell the reviewer both on another way than the file. In the unpacked bundle they run:",
        f"python -I review.py --head {study.head}",
    ]
    answer({**plain, "head": study.head}, shown, json=json)


@app.command()
def verify(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """Check a study's file: pages, chain of hashes, how often people count. Nothing is written."""
    with Progress(quiet=json) as progress:
        progress(str(file))
        study = _opened(file, head, to_read=True)
        study.verify()
    plain = {
        "study": str(file),
        "verified": True,
        **_guaranteed(study),
        "users": study.users,
        "batches": study.batches,
        "head": study.head,
        "head_given": head,
    }
    newest = "has had this head" if head else "unknown: give the --head that you noted"
    rows = [
        ("file", "whole: every row matches the chain of hashes"),
        ("users", f"{study.users:,} in {counted(study.batches, 'batch')}, nobody too often"),
        ("newest copy", newest),
        ("guaranteed to every user", str(study.guarantee)),
        ("head", study.head),
    ]
    answer(plain, [facts(f"Study {file}", rows)], json=json)


@app.command()
def reissue(
    file: StudyFile,
    users: Annotated[
        int | None, Option(help="How many users to ask for now. Left out: as many as before.")
    ] = None,
    returning: Annotated[
        str,
        Option(
            help="Who may be asked again: nobody (only new users), unseen (the same users: no "
            "report has left the shuffler, which deleted them), seen (both releases are charged; "
            "not under shuffle, where a part of a batch has too little noise)."
        ),
    ] = "nobody",
    head: Head = None,
    json: Json = False,
) -> None:
    """Open the pending batch again; reports made for it so far are refused from now on."""
    study = _opened(file, head)
    study.reissue(users, returning=cast("Returning", returning))
    rows = [
        ("asked for now", counted(study.batch_size, "user")),
        ("guaranteed to each", str(study.guarantee)),
        ("token", study.token),
        ("head", study.head),
    ]
    plain = {**_facts(study), "token": study.token}
    answer(plain, [facts(f"Study {file}: batch {study.batches} again", rows)], json=json)


@app.command()
def extend(
    file: StudyFile,
    episodes: Annotated[
        int, users_option("How many users will take part in all.", option="--episodes")
    ],
    head: Head = None,
    json: Json = False,
) -> None:
    """Continue with more users than were planned, or with those who did not come."""
    study = _opened(file, head)
    study.extend(episodes)
    rows = [
        ("users", f"{study.users:,} of {study.episodes:,} in {counted(study.batches, 'batch')}"),
        ("asked for now", counted(study.batch_size, "user")),
        ("guaranteed to each", f"{study.guarantee}, as before"),
        ("head", study.head),
    ]
    answer(_facts(study), [facts(f"Study {file} goes on", rows)], json=json)


@app.command()
def close(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """End a study before all users have come. What was learnt is kept."""
    study = _opened(file, head)
    study.close()
    rows = [
        ("users", f"{study.users:,} in {counted(study.batches, 'batch')}"),
        ("guaranteed to each", str(study.guarantee)),
        *_worth(study),
        *(("note", note) for note in study.notes),
        ("head", study.head),
    ]
    answer(_facts(study), [facts(f"Study {file} is closed", rows)], json=json)


def counted(number: int, noun: str) -> str:
    """How people count.

    >>> [counted(1, "user"), counted(1200, "user"), counted(2, "batch")]
    ['1 user', '1,200 users', '2 batches']
    """
    more = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else more}"


def _opened(file: Path, head: str | None, *, to_read: bool = False) -> "Study":
    from discreet.study.study import Study

    return Study.read(file, head) if to_read else Study.resume(file, head)


def _guaranteed(study: "Study") -> dict[str, Any]:
    """What every JSON answer says: nobody takes a rehearsal for a guarantee."""
    return {"guarantee": str(study.guarantee), "simulated": study.guarantee.simulated}


def _facts(study: "Study") -> dict[str, Any]:
    """Where a study stands, in plain values."""
    found = study.answer
    return {
        "study": str(study.path),
        **_guaranteed(study),
        "epsilon": study.guarantee.to_dict()["epsilon"],
        "delta": study.guarantee.delta,
        "notion": study.guarantee.notion,
        "assumptions": list(study.guarantee.assumptions),
        "users": study.users,
        "episodes": study.episodes,
        "batches": study.batches,
        "finished": study.finished,
        "next_batch": None if study.finished else study.batch_size,
        "value": found.value._asdict(),
        "today": found.today._asdict(),
        "reward_range": list(study.reward_range),
        "notes": list(study.notes),
        "head": study.head,
    }


def _guarantee_rows(study: "Study") -> list[tuple[str, str]]:
    guarantee = study.guarantee
    assumed = [("assumed" if not i else "", text) for i, text in enumerate(guarantee.assumptions)]
    return [("guaranteed to every user", str(guarantee)), *assumed]


def _worth(study: "Study") -> list[tuple[str, str]]:
    """What the policy earns and what is earned today, in the units of the tables."""
    found, steps = study.answer, study.mechanism.shape.horizon
    low, high = study.reward_range
    unit = f"for a user of {steps} steps with rewards from {low:g} to {high:g} each"
    return [
        ("value of the policy so far", f"{study.said(found.value)}, {unit}"),
        ("value of what is done today", study.said(found.today)),
    ]


def _policy_table(title: str, study: "Study", rows: Sequence[dict[str, Any]]) -> Table:
    """A policy for people; the guarantee stands below it, whoever copies it."""
    columns = list(rows[0])
    cells = [[_cell(row[name]) for name in columns] for row in rows]
    return Table(title, columns, cells, caption=str(study.guarantee))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def _names(text: str | None) -> Any:
    """A number, or names."""
    if text is None:
        return None
    if "," in text:
        return _list(text)
    value = parse_value(text)
    return [text.strip()] if isinstance(value, str) else value


def _list(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
