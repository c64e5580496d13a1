"""`discreet service analyser`: the worker that learns."""

from discreet.cli._output import need_extra, say
from discreet.cli.service._shared import PACKAGES, ConfigFile, Rehearsal


def command(config: ConfigFile, rehearsal: Rehearsal = False) -> None:
    """Run the analyser until the study is finished, or it is told to end."""
    need_extra(PACKAGES, "service")
    from discreet.service.analyser.process import analyse
    from discreet.service.configs import AnalyserConfig

    say(f"The analyser ended: {analyse(AnalyserConfig.read(config), rehearsal=rehearsal)}.")
