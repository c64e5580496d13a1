"""The runner holds no tests of its own."""

collect_ignore = ["run.py"]
