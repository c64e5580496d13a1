"""`discreet plot`: figures from a result folder."""

from discreet.cli._console import echo_json, say
from discreet.cli._options import Json, ResultFolder


def command(
    folder: ResultFolder,
    json: Json = False,
) -> None:
    """Draw the figures of a finished experiment as SVG and PNG."""
    from discreet.lab.report import write_figures
    from discreet.lab.results import load

    paths = write_figures(load(folder))
    if json:
        echo_json({"figures": [str(path) for path in paths]})
        return
    for path in paths:
        say(str(path))
