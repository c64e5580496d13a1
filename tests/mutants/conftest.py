"""The runner and the catalogue hold no tests of their own."""

collect_ignore = ["run.py", "catalogue.py"]
