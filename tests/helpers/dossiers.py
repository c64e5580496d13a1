"""Small studies with names that a page must escape."""

import re

from helpers.studies import begin

NAMES = {
    "states": ["ill <b>", "better", "well"],
    "actions": ["wait", "treat & see"],
    "horizon": ["spring", "autumn"],
    "start_states": ["better"],
}


def small(path, trust=None, **changes):
    return begin(path, trust, **{"episodes": 300, **NAMES, **changes})


def section(page, number):
    """What a page says below one of its numbered headings; 0: above the first."""
    return re.split(r"<h2>\d+\. ", page)[number]
