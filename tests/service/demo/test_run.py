"""A study through real processes, a spoiling proxy and kills; and what is found if it fails."""

from dataclasses import replace

import pytest

from discreet.errors import DiscreetError
from discreet.service.demo.run import Arrangement, Demo, Journey, examine, final, simulate
from helpers.faults import FaultProxy
from helpers.services import kept_port

ARRANGEMENT = Arrangement(users=100, spare=1)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A study that went through faults and kills; what was found, the faults, the totals."""
    with kept_port() as port, FaultProxy(port, rate=0.15) as proxy:
        show, found = killed_thrice(tmp_path_factory, port, proxy)
    totals = {"tickets_spent": 100, "received": 0, "batches_sealed": 0, "batches_full": 0}
    return show, found, proxy.faults, totals


def killed_thrice(tmp_path_factory, port, proxy):
    """On a busy machine a study may be over before it was looked at often enough: once more."""
    for attempt in range(5):
        folder = tmp_path_factory.mktemp("demo") / "all"
        show = Demo(folder, ARRANGEMENT, port=port, through=proxy.url)
        try:
            return show, show.run(3)
        except DiscreetError as error:
            if "kills; ask for fewer" not in str(error) or attempt == 4:
                raise
    raise AssertionError("never reached")


def test_nothing_is_lost_and_nothing_twice_through_faults_and_kills(ended):
    _, found, faults, _ = ended
    assert found.users == 100 and sum(found.kills.values()) == 3 and found.batches > 1
    assert found.counted_once and found.ledger_verified and found.forgotten
    assert sum(faults.values()) - faults[""] > 0


def test_regret_is_what_the_simulation_says(ended, tmp_path):
    """Unseeded noise: within five deviations of simulated runs, and not a hair by construction.

    Regret has a long tail: of 1500 simulated runs two were beyond, so at most 0.5 % are (with 95 %
    confidence). One that is beyond is repeated, twice: three in a row happen once in 10^7 times.
    """
    finals = simulate(ARRANGEMENT, 30).finals
    regret = final(ended[1].curve)
    for again in ("second", "third"):
        if not usual(regret, finals):
            regret = final(Demo(tmp_path / again, ARRANGEMENT).run().curve)
    assert usual(regret, finals)
    assert finals.std(ddof=1) < finals.mean() / 2


def usual(regret, finals):
    return abs(regret - finals.mean()) < 5 * finals.std(ddof=1)


def test_the_page_has_a_link_for_every_spare_ticket(ended):
    show = ended[0]
    (link,) = show.links()
    assert link.startswith(f"{show.url}/#study={show.service.charter.id.hex()}&ticket=")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"tickets_spent": 101}, "counted_once"),
        ({"tickets_spent": 99}, "counted_once"),
        ({"batches_sealed": 1}, "forgotten"),
        ({"received": 4}, "forgotten"),
    ],
)
def test_what_does_not_fit_is_found(ended, change, name):
    show, _, _, totals = ended
    mdp, outcome = ARRANGEMENT.home.mdp, Journey(silent=3)
    assert getattr(examine(show.service, mdp, totals, outcome), name)
    assert not getattr(examine(show.service, mdp, totals | change, outcome), name)


def test_a_key_that_was_left_is_found(ended):
    show, _, _, totals = ended
    left = show.service.folder / "analyser" / "keys" / "000000.key"
    left.write_text("00")
    try:
        assert not examine(show.service, ARRANGEMENT.home.mdp, totals, Journey(silent=3)).forgotten
    finally:
        left.unlink()


def test_a_role_that_cannot_start_is_named(tmp_path):
    show = Demo(tmp_path / "all", replace(ARRANGEMENT, spare=0))
    show.service.config("shuffler").write_text("port = 'none'\n")
    with pytest.raises(DiscreetError, match="The shuffler ended with code"):
        show.run()
