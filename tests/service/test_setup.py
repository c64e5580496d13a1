"""Setting up a service: what is refused before anything is written, and who gets which file."""

import dataclasses
import hashlib
import stat
import tomllib
from types import SimpleNamespace

import pytest

import discreet
from discreet.errors import DiscreetError, InvalidInputError, UnsupportedError
from discreet.service.analyser import check_study
from discreet.service.configs import AnalyserConfig, DeviceConfig, ShufflerConfig
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter
from discreet.service.setup import Terms, charter_of, make_tickets, setup_service
from helpers.services import study_arguments, study_design

TRUST = discreet.Shuffle(4, 1e-4, honest=0.95)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("setup") / "service"
    terms = Terms(purpose="a rehearsal", rehearsal=True)
    url = "http://127.0.0.1:8712"
    return setup_service(folder, terms, study_design(TRUST, seed=5), url=url)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_every_role_can_read_its_own_file(service):
    shuffler = ShufflerConfig.read(service.config("shuffler"))
    analyser = AnalyserConfig.read(service.config("analyser"))
    device = DeviceConfig.read(service.config("device"))
    assert shuffler.port == 8712
    assert analyser.url == device.url == "http://127.0.0.1:8712"
    assert bytes.fromhex(device.study) == service.charter.id
    for config in (shuffler, analyser):
        assert Charter.from_bytes(config.path(config.charter).read_bytes()) == service.charter


def test_the_shuffler_is_given_a_digest_and_never_a_secret(service):
    token = (service.folder / "analyser" / "token").read_text()
    text = service.config("shuffler").read_text()
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert tomllib.loads(text)["analyser_token_sha256"] == digest
    assert token not in text
    for secret in ("token", "signing.key"):
        assert mode(service.folder / "analyser" / secret) == 0o600
    for role in ("shuffler", "analyser", "device"):  # a database's password may stand in them
        assert mode(service.config(role)) == 0o600


def test_a_second_study_is_told_its_own_name_and_a_page_of_its_own(tmp_path):
    url, pages = "https://shuffler.example.org", set()
    for number, path in enumerate(("", "/studies/NAME", "/studies/NAME")):
        made = setup_service(tmp_path / str(number), Terms(), study_design(TRUST), url=url + path)
        analyser = AnalyserConfig.read(made.config("analyser"))
        device = DeviceConfig.read(made.config("device"))
        assert analyser.url == device.url == url + path.replace("NAME", made.charter.id.hex())
        pages.add(analyser.page)
    assert len(pages) == 3 and "127.0.0.1:8702" in pages


def test_the_charter_says_what_was_asked_for(service):
    charter = service.charter
    assert (charter.purpose, charter.min_users, charter.rehearsal) == ("a rehearsal", 2, True)
    assert (float(charter.epsilon), float(charter.delta)) == (4.0, 1e-4)
    assert charter.start == (0,)
    charter.verify()


def test_tickets_are_added_and_the_shuffler_knows_their_digests_alone(service):
    first = ticket.read(make_tickets(service.folder, 2)[0])
    path, digests = make_tickets(service.folder, 3)
    tickets = ticket.read(path)
    assert tickets[:2] == first and len(set(tickets)) == 5
    assert digests == service.folder / "shuffler" / "digests.txt"
    assert ticket.read_digests(digests) == sorted(ticket.digest(one) for one in tickets)
    assert mode(path) == mode(digests) == 0o600
    own = service.folder / "enroller" / "digests.txt"  # for a shuffler that has lost its disk
    assert own.read_bytes() == digests.read_bytes()


def test_an_enroller_alone_makes_tickets_and_a_file_to_hand_over(tmp_path):
    (tmp_path / "enroller").mkdir()
    make_tickets(tmp_path, 2)
    path, digests = make_tickets(tmp_path, 1)
    assert digests == tmp_path / "enroller" / "digests.txt"
    assert ticket.read_digests(digests) == sorted(ticket.digest(one) for one in ticket.read(path))


def test_without_an_enroller_no_digest_is_lost(tmp_path):
    known = tmp_path / "shuffler" / "digests.txt"
    known.parent.mkdir()
    ticket.write_digests(known, [bytes(32)])
    with pytest.raises(InvalidInputError, match="tickets are the enroller's"):
        make_tickets(tmp_path, 1)
    (tmp_path / "enroller").mkdir()  # whose own file is lost
    make_tickets(tmp_path, 1)
    assert bytes(32) in ticket.read_digests(known) and len(ticket.read_digests(known)) == 2


def test_a_folder_that_is_there_is_left_alone(service):
    before = sorted(service.folder.rglob("*"))
    with pytest.raises(InvalidInputError, match="exists already"):
        setup_service(service.folder, Terms(), study_design(TRUST))
    assert sorted(service.folder.rglob("*")) == before


def test_people_are_not_protected_by_a_seed(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be seeded"):
        setup_service(tmp_path / "x", Terms(), study_design(TRUST, seed=1))
    assert not (tmp_path / "x").exists()


def test_a_service_counts_on_at_most_19_of_20_users(tmp_path):
    """It counts batches in which some reports cannot be read, so it buys the noise for those."""
    for honest in (1.0, 0.96):
        trust = discreet.Shuffle(4, 1e-4, honest=honest)
        with pytest.raises(InvalidInputError, match=f"honest <= 0.95 in a service, got {honest}"):
            setup_service(tmp_path / "x", Terms(), study_design(trust))
    assert not (tmp_path / "x").exists()


def test_what_can_never_open_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    """A manifest that nobody takes, and reports that a phone does not seal in time."""
    tight = study_design(discreet.Shuffle(0.05, 1e-9, honest=0.95), states=30, horizon=8)
    with pytest.raises(InvalidInputError, match=r"a phone would need [\d,]+ s to seal"):
        setup_service(tmp_path / "x", Terms(), tight)
    monkeypatch.setattr(manifests, "LARGEST", 500)
    with pytest.raises(InvalidInputError, match=r"a manifest of at most 500 bytes, got [\d,]+ for"):
        setup_service(tmp_path / "x", Terms(), study_design(TRUST))
    assert not (tmp_path / "x").exists()


def test_a_first_batch_below_the_least_one_is_refused(tmp_path):
    study = discreet.start_study(tmp_path / "s.db", trust=TRUST, **study_arguments())
    least = dataclasses.replace(study.mechanism, least=1000)
    asking = SimpleNamespace(mechanism=least, batch_size=8, names=None, problem=None)
    with pytest.raises(UnsupportedError, match="min_users=1000; take 'flow-ucb'"):
        charter_of(asking, TRUST, Terms(), bytes(32))


def test_a_charter_counts_on_people_who_return(tmp_path):
    """Its noise and its certificate are for two batches, and no charter of one can claim them."""
    made = {}
    for times in (1, 2):
        trust = dataclasses.replace(TRUST, participations=times)
        study = discreet.start_study(tmp_path / f"{times}.db", trust=trust, **study_arguments())
        made[times] = charter_of(study, trust, Terms(), bytes(32))
        assert made[times].verify() <= made[times].delta
        check_study(made[times], study)
    once, twice = made[1], made[2]
    assert once.mean < twice.mean
    assert "one person, up to 2 episodes" in twice.guarantee and twice.participations == 2
    for of, wrong in ((once, 2), (twice, 1), (twice, 3)):
        with pytest.raises(InvalidInputError, match="certificate is refused"):
            dataclasses.replace(of, participations=wrong).verify()
    with pytest.raises(DiscreetError, match="participations"):
        check_study(dataclasses.replace(twice, participations=3), study)


def test_other_mechanisms_are_refused_with_a_remedy(tmp_path):
    trust = discreet.Central(1, 1e-6)
    study = discreet.start_study(tmp_path / "c.db", trust=trust, **study_arguments())
    with pytest.raises(UnsupportedError, match="mechanism='histogram'"):
        charter_of(study, trust, Terms(), bytes(32))
