"""`discreet service`: private learning from real devices, one file per command."""

import typer

from discreet.cli.service.analyser import command as analyser
from discreet.cli.service.demo import command as demo
from discreet.cli.service.device import command as device
from discreet.cli.service.init import command as init
from discreet.cli.service.shuffler import command as shuffler
from discreet.cli.service.status import command as status
from discreet.cli.service.tickets import command as tickets
from discreet.cli.service.verify import command as verify

app = typer.Typer(
    help="Private learning from real devices: shuffler, analyser, device, enroller.",
    no_args_is_help=True,
)
app.command("init")(init)
app.command("demo")(demo)
app.command("tickets")(tickets)
app.command("shuffler")(shuffler)
app.command("analyser")(analyser)
app.command("device")(device)
app.command("status")(status)
app.command("verify")(verify)
