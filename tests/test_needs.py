"""Tests are marked by what they need, through helpers, classes and what is imported on the spot."""

import subprocess

from helpers.needs import needs


def starts():
    subprocess.run(["true"], check=True)


class Starting:
    def __init__(self):
        starts()


def test_what_is_called_counts():
    assert needs(len) == needs(lambda: needs) == set()
    assert needs(starts) == needs(lambda: [Starting() for _ in ""]) == {"process"}


def test_helpers_that_start_a_browser_or_a_database_have_markers_of_their_own():
    def shown():
        from helpers.chromium import Browser

        return Browser

    def stored():
        from helpers.postgres import Server

        return Server

    assert needs(shown) == {"browser", "process"}
    assert needs(stored) == {"postgres"}
