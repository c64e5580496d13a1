"""``python -m discreet``."""

from discreet.cli.app import main

main()
