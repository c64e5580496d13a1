"""One file per family of mechanisms."""
