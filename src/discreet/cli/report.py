"""`discreet report`: one self-contained HTML page from a result folder."""

from discreet.cli._console import echo_json, say
from discreet.cli._options import Json, ResultFolder


def command(
    folder: ResultFolder,
    json: Json = False,
) -> None:
    """Write the report page of a finished experiment."""
    from discreet.lab.report import write_report
    from discreet.lab.results import load

    path = write_report(load(folder))
    if json:
        echo_json({"report": str(path)})
    else:
        say(str(path))
