"""`discreet service verify`: all that is public about a service, checked."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet._types import Plain
from discreet.cli._options import Json
from discreet.cli._output import echo_json, need_extra, print_table
from discreet.cli.service._shared import PACKAGES, said, show_charter
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from discreet.service.protocol.charter import Charter


def command(
    charter: Annotated[Path, typer.Argument(help="charter.json.")],
    manifests: Annotated[
        Path | None, typer.Option(help="The analyser's folder of manifests.")
    ] = None,
    study: Annotated[Path | None, typer.Option(help="The analyser's study file.")] = None,
    json: Json = False,
) -> None:
    """Check a charter's certificate, the chain of manifests, and the ledger."""
    need_extra(PACKAGES, "service")
    from discreet.service.protocol.charter import Charter

    read = Charter.read(charter)
    found = said(read)
    found["delta_proven"] = float(read.verify())
    found |= _verified(read, manifests, study)
    if json:
        echo_json(found)
        return
    show_charter(read)
    shown = {name: value for name, value in found.items() if name not in said(read)}
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
