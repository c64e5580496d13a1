"""`discreet service`: private learning from real devices, one file per command."""

from discreet.cli._subcommands import subcommands

app = subcommands(
    __name__,
    "Private learning from real devices: shuffler, analyser, device, enroller.",
    ("init", "demo", "tickets", "shuffler", "analyser", "device", "status", "verify"),
)
