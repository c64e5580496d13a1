"""`discreet service status`: what a shuffler says in public."""

from typing import Annotated

import typer

from discreet.cli._options import Json
from discreet.cli._output import echo_json, need_extra, print_table
from discreet.cli.service._shared import PACKAGES, said, show_charter


def command(
    url: Annotated[str, typer.Option(help="Of the shuffler.")] = "http://127.0.0.1:8700",
    json: Json = False,
) -> None:
    """What a shuffler says in public: the promise, and totals."""
    need_extra(PACKAGES, "service")
    from discreet.service.client import Client
    from discreet.service.protocol.charter import Charter

    with Client(url) as client:
        charter, totals = Charter.from_bytes(client.charter()), client.metrics()
    if json:
        echo_json(said(charter) | {"totals": totals})
        return
    show_charter(charter)
    rows = [[name.replace("_", " "), f"{value:,}"] for name, value in totals.items()]
    print_table("Totals", ["what", "number"], rows, right=[1])
