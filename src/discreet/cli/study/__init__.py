"""`discreet study`: the life of a study on the command line, one file per command."""

import typer

from discreet.cli.study.ask import command as ask
from discreet.cli.study.close import command as close
from discreet.cli.study.policy import command as policy
from discreet.cli.study.reissue import command as reissue
from discreet.cli.study.report import command as report
from discreet.cli.study.show import command as show
from discreet.cli.study.start import command as start
from discreet.cli.study.tell import command as tell
from discreet.cli.study.verify import command as verify

app = typer.Typer(
    help="Real people's data over weeks: start, then ask and tell, then report.",
    no_args_is_help=True,
)
app.command("start")(start)
app.command("ask")(ask)
app.command("tell")(tell)
app.command("show")(show)
app.command("policy")(policy)
app.command("report")(report)
app.command("verify")(verify)
app.command("reissue")(reissue)
app.command("close")(close)
