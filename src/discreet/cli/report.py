"""`discreet report`: one self-contained HTML page from a result folder."""

from discreet.cli._console import show_files
from discreet.cli._options import Json, ResultFolder


def command(folder: ResultFolder, json: Json = False) -> None:
    """Write the report page of a finished experiment."""
    from discreet.lab.report import write_report
    from discreet.lab.results import load

    show_files("report", write_report(load(folder)), as_json=json)
