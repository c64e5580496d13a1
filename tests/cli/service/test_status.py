"""`discreet service status`: the promise, what collusion gives, and totals."""

import json

from discreet.service.configs import ShufflerConfig
from discreet.service.shuffler.server import make_shuffler
from helpers.services import serving


def test_a_shuffler_says_what_is_public(discreet, folder):
    discreet("service", "tickets", str(folder), "--count", "3")
    config = ShufflerConfig.read(folder / "shuffler" / "shuffler.toml")
    with serving(make_shuffler(config, rehearsal=True)) as url:
        _, out, _ = discreet("service", "status", "--url", url, "--json")
        _, words, _ = discreet("service", "status", "--url", url)
    said = json.loads(out)
    assert said["totals"]["tickets"] == 3 and "shuffler with analyser" in said["collusion"]
    assert "What collusion gives" in words and "tickets spent" in words
