"""`discreet service demo`: all roles on loopback with a simulated crowd."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._options import Json
from discreet.cli._output import echo_json, need_extra, print_table, say, warn
from discreet.cli.service._shared import PACKAGES
from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from discreet.service.demo.run import Arrangement, Demo, Findings, Sight, Spread

_LINE = 0.5 if sys.stderr.isatty() else 5.0
"""Seconds between two lines of progress."""


def command(
    environment: Annotated[str, typer.Option(help="treatment or energy.")] = "treatment",
    users: Annotated[int, typer.Option(help="Simulated users, each with one ticket.")] = 1000,
    kills: Annotated[int, typer.Option(help="SIGKILLs on the way, over all roles.")] = 0,
    runs: Annotated[int, typer.Option(help="Simulated runs to compare with.")] = 100,
    seed: Annotated[int, typer.Option(help="Of the simulated lives.")] = 0,
    output: Annotated[
        Path | None, typer.Option(help="A new folder that is kept; else a temporary one.")
    ] = None,
    play: Annotated[
        bool, typer.Option("--play", help="Leave one place of every batch to you, at the page.")
    ] = False,
    port: Annotated[
        int, typer.Option(help="Of the shuffler; 0: a free one.", min=0, max=65_535)
    ] = 0,
    json: Json = False,
) -> None:
    """A whole study on this machine: every role a process, the crowd simulated. Protects nobody."""
    need_extra(PACKAGES, "service")
    from discreet.service.demo.run import Arrangement, Demo

    if kills < 0 or runs < 2:
        raise InvalidInputError(f"Expected kills >= 0 and runs >= 2, got {kills} and {runs}.")
    spare = 50 if play else 0
    arrangement = Arrangement(world=environment, users=users, seed=seed, spare=spare)
    folder = output or Path(tempfile.mkdtemp(prefix="discreet-demo-")) / "service"
    began = time.monotonic()
    progress = Line(quiet=json)
    progress("setting up: the study, its certificate, keys, tickets")
    show = Demo(folder, arrangement, leave=1 if play else 0, port=port)
    if play:
        _invite(show)
    found = show.run(kills, lambda sight: progress(_seen(sight, arrangement)))
    band = _simulated(arrangement, runs, progress)
    _finish(folder, arrangement, found, band, seconds=time.monotonic() - began, json=json)


class Line:
    """Progress on standard error: one line that changes on a terminal, one now and then elsewhere.

    Args:
        quiet: say nothing.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet, self._next = quiet, 0.0

    def __call__(self, text: str) -> None:
        """What is under way."""
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + _LINE
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1  # a second line would stay
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
            sys.stderr.flush()
        else:
            warn(text)


def _invite(show: "Demo") -> None:
    links = show.links()
    path = show.service.folder / "enroller" / "links.txt"
    path.write_text("\n".join(links) + "\n", "utf-8")
    warn(f"Take part at {links[0]}")
    warn(f"One place of every batch waits for you; {len(links)} such links are in {path}.")


def _seen(sight: "Sight", arrangement: "Arrangement") -> str:
    killed = f", {sight.kills} killed" if sight.kills else ""
    return (
        f"SIMULATED: {sight.users:,} of {arrangement.users:,} users have sent a report, "
        f"{sight.batches} batches counted{killed}"
    )


def _simulated(arrangement: "Arrangement", runs: int, progress: Callable[[str], None]) -> "Spread":
    from discreet.service.demo.run import simulate

    return simulate(arrangement, runs, lambda run: progress(f"simulated runs: {run} of {runs}"))


def _finish(
    folder: Path,
    arrangement: "Arrangement",
    found: "Findings",
    band: "Spread",
    *,
    seconds: float,
    json: bool,
) -> None:
    from discreet.service.demo.picture import write_page

    page = write_page(folder, arrangement, found, band)
    if json:
        echo_json(found.summary(band) | {"seconds": seconds, "page": str(page)})
    else:
        _show(found, band, seconds)
        say(f"The picture: {page}")
    if not (found.counted_once and found.ledger_verified and found.forgotten):
        raise DiscreetError(f"The service did not keep what it promises; look into {folder}.")


def _show(found: "Findings", band: "Spread", seconds: float) -> None:
    from discreet.service.demo.run import NOT_PROTECTED, final

    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    low, high = band.interval
    rows = [
        ["users counted, each once", f"{found.users:,}" if found.counted_once else "NOT TRUE"],
        ["batches", f"{found.batches}"],
        ["SIGKILLs survived", f"{sum(found.kills.values())}"],
        ["certificate, manifests, ledger verified", "yes" if found.ledger_verified else "NO"],
        ["batch keys and bodies gone", "yes" if found.forgotten else "NO"],
        ["regret through the service", f"{final(found.curve):,.1f}"],
        [f"regret of {len(band.finals)} simulated runs, 95%", f"{low:,.1f} to {high:,.1f}"],
        ["seconds in all", f"{seconds:,.0f}"],
    ]
    print_table("A study through the service (SIMULATED)", ["what", "found"], rows, right=[1])
    _show_curve(found, band)
    say("What this arrangement does not protect:")
    for line in NOT_PROTECTED:
        say(f"  - {line}")


def _show_curve(found: "Findings", band: "Spread") -> None:
    """Regret so far, at some numbers of users."""
    import numpy as np

    chosen = np.unique(np.linspace(0, len(band.users) - 1, 7).astype(int))[1:]
    rows = []
    for i in chosen:
        users = int(band.users[i])
        real = np.interp(users, found.curve.episodes, found.curve.values)
        numbers = (real, band.low[i], band.middle[i], band.high[i])
        rows.append([f"{users:,}", *(f"{number:,.1f}" for number in numbers)])
    columns = ["users", "through the service", "simulated 2.5%", "median", "97.5%"]
    print_table("Regret so far", columns, rows, right=range(5))
