"""`discreet service device`: one participant."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet._files import read_parsed
from discreet.cli._output import echo_json, need_extra
from discreet.cli.service._shared import PACKAGES, ConfigFile, Rehearsal
from discreet.errors import InvalidInputError


def command(
    config: ConfigFile,
    ticket: Annotated[
        str, typer.Option(help="64 hexadecimal digits; other accounts of this machine can read it.")
    ] = "",
    ticket_file: Annotated[
        Path | None, typer.Option(help="A file with the ticket, which they cannot read.")
    ] = None,
    episode: Annotated[
        Path | None,
        typer.Option(help="JSON with states, actions and rewards; without it, show the policy."),
    ] = None,
    rehearsal: Rehearsal = False,
) -> None:
    """Show the policy to play; with an episode: encode, seal and send it."""
    need_extra(PACKAGES, "service")
    from discreet.device import DeviceError
    from discreet.service.client import Client
    from discreet.service.configs import DeviceConfig
    from discreet.service.participant import make_participant

    settings = DeviceConfig.read(config)
    if ticket_file is not None:
        ticket = read_parsed(ticket_file, bytes.decode, "the ticket").strip()
    data = None if episode is None else _episode(episode)
    with Client(settings.url, proxy=settings.proxy) as client:
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


def _episode(path: Path) -> dict[str, Any]:
    import json

    data = read_parsed(path, json.loads, "the episode")
    if not isinstance(data, dict):
        raise InvalidInputError(f"Expected states, actions and rewards in {str(path)!r}.")
    return data
