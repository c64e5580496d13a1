"""All roles on loopback: a whole study through the real thing, every user counted once."""

import threading

import pytest

import discreet
from discreet.service import verification
from discreet.service.client import Client
from discreet.service.configs import AnalyserConfig, ShufflerConfig
from discreet.service.participant import fetch_charter
from discreet.service.protocol import ticket
from discreet.service.setup import Terms, make_tickets, setup_service
from discreet.service.shuffler.server import make_shuffler
from discreet.service.worker import make_analyser
from helpers.service_analysers import send_users
from helpers.services import serving, study_design


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A rehearsal with forty users and their tickets."""
    folder = tmp_path_factory.mktemp("service") / "all"
    terms = Terms(rehearsal=True)
    one = setup_service(folder, terms, study_design(discreet.Shuffle(4, 1e-4, honest=0.95), seed=3))
    make_tickets(folder, 40)
    return one


def test_a_whole_study_through_all_roles(service):
    shuffler = make_shuffler(ShufflerConfig.read(service.config("shuffler")), rehearsal=True)
    ended = threading.Event()
    with serving(shuffler) as url:
        text = service.config("analyser").read_text().replace("http://127.0.0.1:8700", url)
        service.config("analyser").write_text(text)
        analyser = make_analyser(AnalyserConfig.read(service.config("analyser")), rehearsal=True)

        def work():
            try:
                analyser.run(lambda _: ended.wait(0.01), ended.is_set)
            finally:
                ended.set()

        thread = threading.Thread(target=work)
        thread.start()
        client = Client(url)
        of = fetch_charter(client, service.charter.id, rehearsal=True)
        passes = iter(ticket.read(service.folder / "enroller" / "tickets.txt"))
        while not ended.wait(0.01):
            send_users(of, client, passes)
        thread.join()
        totals = client.metrics()
        client.close()
        analyser.close()
    assert totals["tickets_spent"] == 40 and totals["batches_done"] == analyser.study.batches > 1
    study = discreet.open_study(service.folder / "analyser" / "study.db")
    assert study.finished and study.users == 40
    signed = verification.read_manifests(service.folder / "analyser" / "manifests")
    known = verification.check_chain(service.charter, signed)
    assert verification.check_ledger(study, known) == study.batches
    assert not list((service.folder / "analyser" / "keys").iterdir())
