"""`discreet plot`: figures from a result folder."""

from discreet.cli._console import show_files
from discreet.cli._options import Json, ResultFolder


def command(folder: ResultFolder, json: Json = False) -> None:
    """Draw the figures of a finished experiment as SVG and PNG."""
    from discreet.lab.report import write_figures
    from discreet.lab.results import load

    show_files("figures", write_figures(load(folder)), as_json=json)
