"""`discreet service`: private learning from real devices, one command per role."""

import importlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet._files import reason
from discreet._plain import Plain
from discreet.cli._console import echo_json, print_table, say, warn
from discreet.cli._options import Json, grouped
from discreet.cli.service.demo import demo
from discreet.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from discreet.service.protocol.charter import Charter

app = typer.Typer(
    help="Private learning from real devices: shuffler, analyser, device, enroller.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path, typer.Argument(help="The folder that `init` made, or the enroller's part of it.")
]
ConfigFile = Annotated[Path, typer.Option("--config", help="The role's TOML file.")]
Rehearsal = Annotated[
    bool, typer.Option("--rehearsal", help="Users are simulated and nobody is protected.")
]


@dataclass(frozen=True)
class Promised:
    """Options on what is promised."""

    epsilon: Annotated[float, typer.Option(help="Epsilon.")] = 1.0
    delta: Annotated[float, typer.Option(help="Delta.")] = 1e-6
    honest: Annotated[float, typer.Option(help="Fraction of users whose noise counts.")] = 1.0
    least_users: Annotated[
        int, typer.Option(help="No batch is smaller; 0: a quarter of the first batch.")
    ] = 0
    patience: Annotated[int, typer.Option(help="Seconds for which a batch may stay open.")] = (
        7 * 86_400
    )
    purpose: Annotated[str, typer.Option(help="In words for participants.")] = (
        "a study with discreet"
    )


@dataclass(frozen=True)
class Studied:
    """Options on what is learnt."""

    learner: Annotated[str, typer.Option(help="A batch learner.")] = "flow-ucb"
    states: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "4"
    actions: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "2"
    steps: Annotated[str, typer.Option(help="Their number, or names with commas.")] = "6"
    start: Annotated[str, typer.Option(help="Start states with commas, if that is public.")] = ""
    episodes: Annotated[int, typer.Option(help="How many users will take part in all.")] = 10_000


def found(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files of all roles.")],
    promised: Promised,
    studied: Studied,
    url: Annotated[str, typer.Option(help="Where the shuffler will be.")] = "http://127.0.0.1:8700",
    store: Annotated[str, typer.Option(help="A file, or postgresql://...")] = "shuffler.db",
    rehearsal: Rehearsal = False,
    json: Json = False,
) -> None:
    """Begin a study, prove its promise, write charter, keys and a file per role."""
    need_extra()
    from discreet.privacy.trust import Shuffle
    from discreet.service.configs import check_url
    from discreet.service.founding import Terms
    from discreet.service.founding import found as begin

    terms = Terms(
        purpose=promised.purpose,
        least_users=promised.least_users,
        patience=promised.patience,
        rehearsal=rehearsal,
    )
    check_url(url)
    if not json and not folder.exists():
        warn("Calibrating the noise and proving the promise; some seconds ...")
    founded = begin(
        folder,
        terms,
        trust=Shuffle(promised.epsilon, promised.delta, honest=promised.honest),
        url=url,
        store=store,
        learner=studied.learner,
        states=_names(studied.states),
        actions=_names(studied.actions),
        horizon=_names(studied.steps),
        start_states=_starts(studied.start),
        episodes=studied.episodes,
    )
    if json:
        echo_json(_said(founded.charter) | {"folder": str(folder)})
        return
    _show_charter(founded.charter)
    say(f"Next: discreet service tickets {folder} --count N; then give each role its folder.")


app.command("init")(grouped(found))
app.command()(demo)


@app.command()
def tickets(
    folder: Folder,
    count: Annotated[int, typer.Option(help="How many more.")],
    json: Json = False,
) -> None:
    """Make tickets for the enroller, and their digests for the shuffler."""
    need_extra()
    from discreet.service.founding import make_tickets

    path, digests = make_tickets(folder, count)
    if json:
        echo_json({"tickets": str(path), "digests": str(digests), "count": count})
        return
    say(f"{count} more tickets in {path}: each participant gets one, nobody else sees them.")
    if digests.parent == path.parent:
        say(f"Give {digests} to the shuffler, in place of its tickets.txt; it reads it at a start.")
    else:
        say(f"Their digests are in {digests}; the shuffler reads them at its next start.")


@app.command()
def shuffler(config: ConfigFile, rehearsal: Rehearsal = False) -> None:
    """Run the shuffler until it is told to end."""
    need_extra()
    from discreet.service.configs import ShufflerConfig
    from discreet.service.roles import serve

    serve(ShufflerConfig.read(config), rehearsal=rehearsal)


@app.command()
def analyser(config: ConfigFile, rehearsal: Rehearsal = False) -> None:
    """Run the analyser until the study is finished, or it is told to end."""
    need_extra()
    from discreet.service.configs import AnalyserConfig
    from discreet.service.roles import analyse

    say(f"The analyser ended: {analyse(AnalyserConfig.read(config), rehearsal=rehearsal)}.")


@app.command()
def device(
    config: ConfigFile,
    ticket: Annotated[str, typer.Option(help="64 hexadecimal digits.")] = "",
    episode: Annotated[
        Path | None,
        typer.Option(help="JSON with states, actions and rewards; without it, show the policy."),
    ] = None,
    rehearsal: Rehearsal = False,
) -> None:
    """Show the policy to play; with an episode: encode, seal and send it."""
    need_extra()
    from discreet.device import DeviceError
    from discreet.service.client import Client
    from discreet.service.configs import DeviceConfig
    from discreet.service.roles import make_participant

    settings = DeviceConfig.read(config)
    data = None if episode is None else _episode(episode)
    with Client(settings.url) as client:
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
    echo_json({"state": state})
    if state not in ("accepted", "ticketSpent"):
        raise typer.Exit(1)


@app.command()
def status(
    url: Annotated[str, typer.Option(help="Of the shuffler.")] = "http://127.0.0.1:8700",
    json: Json = False,
) -> None:
    """What a shuffler says in public: the promise, and totals."""
    need_extra()
    from discreet.service.client import Client
    from discreet.service.protocol.charter import Charter

    with Client(url) as client:
        charter, totals = Charter.from_bytes(client.charter()), client.metrics()
    if json:
        echo_json(_said(charter) | {"totals": totals})
        return
    _show_charter(charter)
    rows = [[name.replace("_", " "), f"{value:,}"] for name, value in totals.items()]
    print_table("Totals", ["what", "number"], rows, right=[1])


@app.command()
def verify(
    charter: Annotated[Path, typer.Argument(help="charter.json.")],
    manifests: Annotated[
        Path | None, typer.Option(help="The analyser's folder of manifests.")
    ] = None,
    study: Annotated[Path | None, typer.Option(help="The analyser's study file.")] = None,
    json: Json = False,
) -> None:
    """Check a charter's certificate, the chain of manifests, and the ledger."""
    need_extra()
    from discreet.service.roles import read_charter

    read = read_charter(charter)
    found = _said(read)
    found["delta_proven"] = float(read.verify())
    found |= _verified(read, manifests, study)
    if json:
        echo_json(found)
        return
    _show_charter(read)
    shown = {name: value for name, value in found.items() if name not in _said(read)}
    rows = [[name.replace("_", " "), str(value)] for name, value in shown.items()]
    print_table("Verified", ["what", "value"], rows)


def _verified(charter: "Charter", manifests: Path | None, study: Path | None) -> dict[str, Plain]:
    from discreet.service import verification
    from discreet.study.study import Study

    if manifests is None:
        if study is not None:
            raise InvalidInputError("A ledger is checked against manifests: give --manifests too.")
        return {}
    chain = verification.check_chain(charter, verification.read_manifests(manifests))
    found: dict[str, Plain] = {"manifests": len(chain)}
    if study is not None:
        found["batches_counted"] = verification.check_ledger(Study.read(study), chain)
    return found


def _said(charter: "Charter") -> dict[str, Plain]:
    """What everybody is told first, for scripts."""
    return {
        "study": charter.id.hex(),
        "promise": charter.promise,
        "collusion": charter.collusion,
    }


def _show_charter(charter: "Charter") -> None:
    rows = [
        ["study", charter.id.hex()],
        ["purpose", charter.purpose],
        ["promise", charter.promise],
        ["noise per cell", f"{float(charter.mean):g} (certified)"],
        ["least batch", f"{charter.least_users} users"],
    ]
    print_table("Charter", ["what", "value"], rows)
    together = [[who, what] for who, what in charter.collusion.items()]
    print_table("What collusion gives", ["who", "what it gives them"], together)


def _names(text: str) -> int | list[str]:
    return int(text) if text.isdigit() else [name.strip() for name in text.split(",")]


def _starts(text: str) -> list[int | str] | None:
    return [name.strip() for name in text.split(",")] if text else None


def _episode(path: Path) -> dict[str, Any]:
    import json

    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"Cannot read the episode {str(path)!r}: {reason(error)}."
        ) from None
    if not isinstance(data, dict):
        raise InvalidInputError(f"Expected states, actions and rewards in {str(path)!r}.")
    return data


def need_extra() -> None:
    """All checks before the first long step."""
    for package in ("cryptography", "starlette", "uvicorn", "httpx"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtraError(package, "service") from None
