"""Small studies with names that a page must escape."""

from helpers.studies import begin

NAMES = {
    "states": ["ill <b>", "better", "well"],
    "actions": ["wait", "treat & see"],
    "horizon": ["spring", "autumn"],
    "start_states": ["better"],
}


def small(path, trust=None, **changes):
    return begin(path, trust, **{"episodes": 300, **NAMES, **changes})
