"""`discreet service`: private learning from real devices, one command per role and task."""

import contextlib
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from discreet._files import read_parsed
from discreet._types import Plain
from discreet.cli.options import Json, grouped
from discreet.cli.output import (
    Table,
    answer,
    echo_json,
    facts,
    need_extra,
    say,
    warn,
    warn_of_guarantee,
)
from discreet.cli.study import DesignOptions, Learning
from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from discreet.service.demo.run import Demo
    from discreet.service.protocol.charter import Charter

_PACKAGES = ("cryptography", "starlette", "uvicorn", "httpx", "prometheus_client", "jinja2")
"""What the extra `service` brings."""
_LISTED = ("batches_done", "received", "tickets_spent")
"""What is said of each of several studies."""
_URL = "http://127.0.0.1:8700"
ConfigFile = Annotated[Path, typer.Option("--config", help="The role's TOML file.")]
Rehearsal = Annotated[
    bool, typer.Option("--rehearsal", help="A rehearsal: users are simulated, nobody is protected.")
]
CaFile = Annotated[
    Path | None, typer.Option(help="PEM file of your own certificate authority, if you use one.")
]
LogFormat = Annotated[
    Literal["text", "json"], typer.Option(help="Format of the log on standard error.")
]

app = typer.Typer(
    help="Run a private study with real devices: shuffler, analyser, device, enroller.",
    no_args_is_help=True,
)


@dataclass(frozen=True)
class Terms:
    """Options on what is agreed besides the design."""

    min_users: Annotated[
        int | None,
        typer.Option(help="Users of the smallest batch. Left out: a hundredth of all users."),
    ] = None
    patience: Annotated[
        int, typer.Option(help="Seconds after which an open batch is discarded.")
    ] = 7 * 86_400
    purpose: Annotated[
        str, typer.Option(help="What the study is for, in words for participants.")
    ] = "a study with discreet"


@dataclass(frozen=True)
class _Shuffled(DesignOptions):
    """The design of a service."""

    trust: Annotated[
        str | None, typer.Option(help="shuffle, which is all that a service takes.")
    ] = None
    honest: Annotated[
        float | None,
        typer.Option(
            help="The fraction of users who add their noise honestly, at most 0.95, the default."
        ),
    ] = None


@app.command("init")
@grouped
def init(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files of all roles.")],
    design: _Shuffled,
    learning: Learning,
    terms: Terms,
    url: Annotated[str, typer.Option(help="Address of the shuffler.")] = _URL,
    store: Annotated[
        str, typer.Option(help="The shuffler's store: an SQLite file, or postgresql://...")
    ] = "shuffler.db",
    rehearsal: Rehearsal = False,
    json: Json = False,
) -> None:
    """Set up a study: charter, keys, and a folder for each role."""
    need_extra(_PACKAGES, "service")
    from discreet.service import setup
    from discreet.service.configs import check_url

    check_url(url)
    written = design.read(learning.given())
    trust = {"model": "shuffle", "honest": float(setup.HONEST), **written.trust}
    if terms.min_users is not None:
        trust["min_users"] = terms.min_users
    if trust["model"] != "shuffle":
        raise InvalidInputError(
            f'Expected model = "shuffle" in [trust] of a service, got {trust["model"]!r}; '
            f"`discreet study start` takes the other trust models."
        )
    given = replace(written, trust=trust)
    warn_of_guarantee(*(getattr(given.trust_model, name) for name in ("epsilon", "delta")))
    if not json and not folder.exists():
        warn("Calibrating the noise and proving the guarantee; some seconds ...")
    agreed = setup.Terms(purpose=terms.purpose, patience=terms.patience, rehearsal=rehearsal)
    service = setup.setup_service(folder, agreed, given, url=url, store=store)
    then = f"Next: discreet service tickets {folder} --count N; then give each role its folder."
    plain = _said(service.charter) | {"folder": str(folder)}
    answer(plain, [*_charter(service.charter), then], json=json)


@app.command("demo")
def demo(
    environment: Annotated[
        str, typer.Option(help="What is simulated: treatment or energy.")
    ] = "treatment",
    users: Annotated[int, typer.Option(help="Simulated users, each with one ticket.")] = 1000,
    participations: Annotated[
        int, typer.Option(help="In how many batches a simulated user takes part.")
    ] = 1,
    kills: Annotated[int, typer.Option(help="How many processes are killed on the way.")] = 0,
    runs: Annotated[int, typer.Option(help="How many simulated runs to compare with.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the simulated users.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="A new folder to keep. Left out: a temporary folder.")
    ] = None,
    play: Annotated[
        bool, typer.Option("--play", help="Keep one place of every batch for you, in a browser.")
    ] = False,
    port: Annotated[
        int, typer.Option(help="Port of the shuffler. 0: a free one.", min=0, max=65_535)
    ] = 0,
    json: Json = False,
) -> None:
    """Run a whole study on this machine with simulated users. It protects nobody."""
    need_extra(_PACKAGES, "service")
    from discreet.service.demo.run import NOT_PROTECTED, Arrangement, Demo, Sight, simulate

    if kills < 0 or runs < 2:
        raise InvalidInputError(f"Expected kills >= 0 and runs >= 2, got {kills} and {runs}.")
    arrangement = Arrangement(
        world=environment,
        users=users,
        participations=participations,
        seed=seed,
        spare=50 if play else 0,
    )
    folder = output or Path(tempfile.mkdtemp(prefix="discreet-demo-")) / "service"
    began = time.monotonic()
    progress = _Line(quiet=json)
    progress("setting up: the study, its certificate, keys, tickets")
    show = Demo(folder, arrangement, leave=1 if play else 0, port=port)
    if not json:
        warn(f"The operator's page, while it runs: {show.page}")
    if play:
        _invite(show)

    def look(sight: Sight) -> None:
        killed = f", {sight.kills} killed" if sight.kills else ""
        progress(
            f"SIMULATED: {sight.users:,} of {users:,} users have sent a report, "
            f"{sight.batches} batches counted{killed}"
        )

    found = show.run(kills, look)
    simulated = simulate(
        arrangement, runs, lambda run: progress(f"simulated runs: {run} of {runs}")
    )
    progress.end()
    told = found.to_dict(simulated) | {"seconds": time.monotonic() - began}
    rows = [[name.replace("_", " "), _worded(value)] for name, value in told.items()]
    table = Table("A study through the service (SIMULATED)", ["what", "found"], rows, right=[1])
    lines = ["What this arrangement does not protect:", *(f"  - {one}" for one in NOT_PROTECTED)]
    answer(told, [table, *lines], json=json)
    if not (found.counted_once and found.ledger_verified and found.forgotten):
        raise DiscreetError(f"The service did not keep what it promises; look into {folder}.")


class _Line:
    """Progress on standard error: a line that changes on a terminal, one now and then elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._live, self._quiet, self._next = sys.stderr.isatty() and not quiet, quiet, 0.0

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (0.5 if self._live else 5.0)
        if self._live:
            width = shutil.get_terminal_size().columns - 1  # a second line would stay
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
            sys.stderr.flush()
        else:
            warn(text)

    def end(self) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")


def _invite(show: "Demo") -> None:
    links = show.links()
    path = show.service.folder / "enroller" / "links.txt"
    path.write_text("\n".join(links) + "\n", "utf-8")
    warn(f"Take part at {links[0]}")
    warn(f"One place of every batch waits for you; {len(links)} such links are in {path}.")


def _worded(value: "Plain") -> str:
    """A finding: yes or NO, a number, or several with their names."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_worded(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


@app.command("tickets")
def tickets(
    folder: Annotated[
        Path, typer.Argument(help="The folder that `init` wrote, or the enroller's folder in it.")
    ],
    count: Annotated[int, typer.Option(help="How many new tickets.")],
    json: Json = False,
) -> None:
    """Make tickets for participants."""
    need_extra(_PACKAGES, "service")
    from discreet.service.setup import make_tickets

    path, digests = make_tickets(folder, count)
    then = f"Their digests are in {digests}; reload the shuffler (SIGHUP) if it runs."
    if digests.parent == path.parent:
        then = f"Give {digests} to the shuffler in place of its own, and reload it (SIGHUP)."
    made = f"{count} more tickets in {path}: each participant gets one, nobody else sees them."
    plain = {"tickets": str(path), "digests": str(digests), "count": count}
    answer(plain, [made, then], json=json)


@app.command("shuffler")
def shuffler(
    config: ConfigFile, rehearsal: Rehearsal = False, log_format: LogFormat = "text"
) -> None:
    """Run the shuffler."""
    need_extra(_PACKAGES, "service")
    from discreet.service.configs import ShufflerConfig
    from discreet.service.shuffler.server import serve

    read = ShufflerConfig.read(config)
    with _last_line(log_format):
        serve(read, rehearsal=rehearsal, log_format=log_format)


@contextlib.contextmanager
def _last_line(log_format: str) -> Iterator[None]:
    """In a log of JSON the reason for the end is a line like all others."""
    try:
        yield
    except DiscreetError as error:
        if log_format == "text":
            raise
        logging.getLogger("discreet.service").error("%s", error, extra={"code": "ended"})
        raise typer.Exit(2) from None


@app.command("analyser")
def analyser(
    config: ConfigFile,
    accept: Annotated[
        int | None,
        typer.Option(
            help="Count the batch of this manifest, although many envelopes cannot be read."
        ),
    ] = None,
    rehearsal: Rehearsal = False,
    log_format: LogFormat = "text",
) -> None:
    """Run the analyser until the study is finished."""
    need_extra(_PACKAGES, "service")
    from discreet.service.configs import AnalyserConfig
    from discreet.service.monitor import watched
    from discreet.service.worker import analyse

    read = AnalyserConfig.read(config)
    with _last_line(log_format):
        ended = analyse(
            read, rehearsal=rehearsal, log_format=log_format, watched=watched, accepted=accept
        )
    say(f"The study is {ended}." if ended == "finished" else "The analyser was told to end.")


@app.command("abandon")
def abandon(config: ConfigFile, rehearsal: Rehearsal = False) -> None:
    """Give up the open batch, after a lost key or a restore.

    Batches that this copy of the study does not have are given up, too. Users whose report the
    shuffler has handed over are not asked again.
    """
    need_extra(_PACKAGES, "service")
    from discreet.service.configs import AnalyserConfig
    from discreet.service.worker import make_analyser, working_alone

    settings = AnalyserConfig.read(config)
    with working_alone(settings):
        one = make_analyser(settings, rehearsal=rehearsal)
        try:
            say(one.abandon())
        finally:
            one.close()


@app.command("recover")
def recover(
    config: ConfigFile,
    manifests: Annotated[Path, typer.Option(help="Folder of the analyser's manifests.")],
    rehearsal: Rehearsal = False,
) -> None:
    """Go on after the shuffler's store was lost or restored. All tickets become void.

    Stop all processes of the shuffler first. Then give the enroller the file recovery.txt: the
    shuffler admits only tickets that are made with it.
    """
    need_extra(_PACKAGES, "service")
    from discreet.service.configs import ShufflerConfig
    from discreet.service.shuffler import server
    from discreet.service.verification import read_manifests

    void = server.recover(
        ShufflerConfig.read(config), read_manifests(manifests), rehearsal=rehearsal
    )
    say(
        f"{void} tickets are void, and so is every other that was made so far. Put recovery.txt, "
        f"which stands beside digests.txt, into the enroller's folder, make new ones, and give "
        f"them only to people who were never given any."
    )


@app.command("rotate")
def rotate(
    what: Annotated[str, typer.Argument(help="token or signing-key.")], config: ConfigFile
) -> None:
    """Replace the analyser's token or signing key."""
    need_extra(_PACKAGES, "service")
    from discreet import _validate
    from discreet.service.configs import AnalyserConfig
    from discreet.service.setup import rotate_signing_key, rotate_token

    _validate.choice(("token", "signing-key"), what=what)
    settings = AnalyserConfig.read(config)
    if what == "signing-key":
        rotate_signing_key(settings)
        say("Start the analyser again: its next manifest names the new key, the one after uses it.")
        return
    say("Put this line into the shuffler's file and reload the shuffler (SIGHUP):")
    say(f'analyser_token_sha256 = "{rotate_token(settings)}"')
    say(
        "Then start the analyser again, leave only the first digest in that line, and reload again."
    )


@app.command("device")
def device(
    config: ConfigFile,
    ticket: Annotated[
        str,
        typer.Option(
            help="The ticket, 64 hexadecimal digits. Other accounts of the machine can read it."
        ),
    ] = "",
    ticket_file: Annotated[
        Path | None, typer.Option(help="A file with the ticket, which other accounts cannot read.")
    ] = None,
    episode: Annotated[
        Path | None,
        typer.Option(help="JSON file with states, actions and rewards. Left out: show the policy."),
    ] = None,
    rehearsal: Rehearsal = False,
) -> None:
    """Show the policy of the batch, or send an episode."""
    need_extra(_PACKAGES, "service")
    from discreet.device import DeviceError
    from discreet.service.client import Client
    from discreet.service.configs import DeviceConfig
    from discreet.service.participant import TAKEN, make_participant

    settings = DeviceConfig.read(config)
    if ticket_file is not None:
        ticket = read_parsed(ticket_file, bytes.decode, "the ticket").strip()
    data = None if episode is None else _episode(episode)
    trusted = settings.optional(settings.ca_file)
    with Client(settings.url, proxy=settings.proxy, ca_file=trusted) as client:
        chain, participant = make_participant(
            settings, client, time.sleep, own=ticket, rehearsal=rehearsal
        )
        if data is None:
            manifest = chain.current().manifest
            named = {kind: list(names) for kind, names in chain.charter.names.items()}
            echo_json({"manifest": manifest.hash.hex(), "policy": manifest.policy, **named})
            return
        try:
            state = participant.attempt(lambda _: data)
        except DeviceError as error:  # the device knows nothing of the rest of the library
            raise InvalidInputError(f"{error} Nothing was sent; mend {str(episode)!r}.") from None
    echo_json({"state": state, "left": 0 if state == "ticketSpent" else participant.left})
    if state not in TAKEN:
        raise typer.Exit(1)


def _episode(path: Path) -> dict[str, Any]:
    import json

    data = read_parsed(path, json.loads, "the episode")
    if not isinstance(data, dict):
        raise InvalidInputError(f"Expected states, actions and rewards in {str(path)!r}.")
    return data


@app.command("status")
def status(
    url: Annotated[str, typer.Option(help="Address of the shuffler.")] = _URL,
    ca_file: CaFile = None,
    json: Json = False,
) -> None:
    """Show the guarantee and the public totals of a shuffler."""
    need_extra(_PACKAGES, "service")
    from discreet.service.client import Client
    from discreet.service.protocol.charter import Charter

    with Client(url, ca_file=ca_file) as client:
        charter, totals = Charter.from_bytes(client.charter()), client.metrics()
        studies: list[dict[str, Any]] = [{**one, "totals": totals} for one in client.studies()]
        root = url.partition("/studies/")[0].rstrip("/")
        for one in studies[1:]:
            with Client(root + one["path"], ca_file=ca_file) as other:
                one["totals"] = other.metrics()
    rows = [[name.replace("_", " "), f"{value:,}"] for name, value in totals.items()]
    shown = [*_charter(charter), Table("Totals", ["what", "number"], rows, right=[1])]
    if len(studies) > 1:
        listed = [
            [one["study"][:16], one["purpose"], *(f"{one['totals'][k]:,}" for k in _LISTED)]
            for one in studies
        ]
        words = [name.replace("_", " ") for name in _LISTED]
        shown.append(Table("All studies of this shuffler", ["study", "purpose", *words], listed))
    answer(_said(charter) | {"totals": totals, "studies": studies}, shown, json=json)


@app.command("verify")
def verify(
    charter: Annotated[Path, typer.Argument(help="The file charter.json.")],
    manifests: Annotated[
        Path | None, typer.Option(help="Folder of the analyser's manifests.")
    ] = None,
    study: Annotated[Path | None, typer.Option(help="The analyser's study, a file.")] = None,
    url: Annotated[
        str, typer.Option(help="Address of the shuffler, which keeps all manifests, too.")
    ] = "",
    ca_file: CaFile = None,
    json: Json = False,
) -> None:
    """Check a charter, its manifests and the ledger."""
    need_extra(_PACKAGES, "service")
    from discreet.service import verification
    from discreet.service.client import Client
    from discreet.service.protocol.charter import Charter
    from discreet.study.study import Study

    read = Charter.read(charter)
    found: dict[str, Plain] = {"delta_proven": float(read.verify())}
    if manifests is None and not url and study is not None:
        raise InvalidInputError(
            "A ledger is checked against manifests: give --manifests or --url, best both."
        )
    if manifests is not None or url:
        signed = [] if manifests is None else verification.read_manifests(manifests)
        if url:
            with Client(url, ca_file=ca_file) as client:
                theirs = client.manifests()
            if manifests is not None:
                verification.check_witness(signed, theirs)
            signed = signed or theirs
            found["manifests_at_the_shuffler"] = len(theirs)
        chain = verification.check_chain(read, signed)
        found["manifests"] = len(chain)
        if study is not None:
            found["batches_counted"] = verification.check_ledger(Study.read(study), chain)
    rows = [[name.replace("_", " "), str(value)] for name, value in found.items()]
    answer(_said(read) | found, [*_charter(read), facts("Verified", rows)], json=json)


def _said(charter: "Charter") -> dict[str, Plain]:
    return {
        "study": charter.id.hex(),
        "guarantee": charter.guarantee,
        "collusion": charter.collusion,
    }


def _charter(charter: "Charter") -> list[Table]:
    from discreet.privacy.guarantee import rounded_down
    from discreet.service.protocol.report import HEADER

    often = charter.participations
    worth = "1 batch" if often == 1 else f"{often} batches, one report in each"
    rows = [
        ["study", charter.id.hex()],
        ["purpose", charter.purpose],
        ["guarantee", charter.guarantee],
        ["a ticket is worth", worth],
        ["noise per cell", f"{rounded_down(charter.mean, 6)} (certified)"],
        ["least batch", f"{charter.min_users} users"],
        ["largest report", f"{HEADER + charter.largest_body:,} bytes"],
    ]
    together = [[who, what] for who, what in charter.collusion.items()]
    collusion = Table("What collusion gives", ["who", "what it gives them"], together)
    return [facts("Charter", rows), collusion]
