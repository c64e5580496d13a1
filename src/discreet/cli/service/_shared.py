"""What the commands of a service share: options, and a charter as people and scripts see it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet._types import Plain
from discreet.cli._output import print_table

if TYPE_CHECKING:
    from discreet.service.protocol.charter import Charter

PACKAGES = ("cryptography", "starlette", "uvicorn", "httpx")
"""What the extra `service` brings."""
ConfigFile = Annotated[Path, typer.Option("--config", help="The role's TOML file.")]
Rehearsal = Annotated[
    bool, typer.Option("--rehearsal", help="Users are simulated and nobody is protected.")
]


def said(charter: "Charter") -> dict[str, Plain]:
    """What everybody is told first, for scripts."""
    return {
        "study": charter.id.hex(),
        "promise": charter.promise,
        "collusion": charter.collusion,
    }


def show_charter(charter: "Charter") -> None:
    """A charter, and what collusion gives."""
    from discreet.privacy.guarantee import rounded_down

    rows = [
        ["study", charter.id.hex()],
        ["purpose", charter.purpose],
        ["promise", charter.promise],
        ["noise per cell", f"{rounded_down(charter.mean, 6)} (certified)"],
        ["least batch", f"{charter.min_users} users"],
    ]
    print_table("Charter", ["what", "value"], rows)
    together = [[who, what] for who, what in charter.collusion.items()]
    print_table("What collusion gives", ["who", "what it gives them"], together)
