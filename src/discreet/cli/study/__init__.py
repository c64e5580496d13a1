"""`discreet study`: the life of a study on the command line, one file per command."""

from discreet.cli._subcommands import subcommands

app = subcommands(
    __name__,
    "Real people's data over weeks: start, then ask and tell, then report.",
    ("start", "ask", "tell", "show", "policy", "report", "verify", "reissue", "close"),
)
