"""`discreet service shuffler`: the only server."""

from discreet.cli._output import need_extra
from discreet.cli.service._shared import PACKAGES, ConfigFile, Rehearsal


def command(config: ConfigFile, rehearsal: Rehearsal = False) -> None:
    """Run the shuffler until it is told to end."""
    need_extra(PACKAGES, "service")
    from discreet.service.configs import ShufflerConfig
    from discreet.service.shuffler.server import serve

    serve(ShufflerConfig.read(config), rehearsal=rehearsal)
