"""Files kept at commit 9cea6499 (`recorded/`) open and go on, or are refused and unchanged."""

import base64
import json
import lzma
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import discreet
from discreet.errors import BudgetError, DiscreetError, StudyError

HERE = Path(__file__).parent / "recorded"
FACTS = json.loads((HERE / "facts.json").read_text())


def unpacked(name, place):
    """The files of a row as they were kept."""
    shutil.copytree(HERE / name, place)
    for packed in place.glob("*.xz.b64"):
        kept = place / packed.name.removesuffix(".xz.b64")
        kept.write_bytes(lzma.decompress(base64.decodebytes(packed.read_bytes())))
        kept.chmod(0o600)
        packed.unlink()
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def study(place, said):
    """People who were counted are recognised, others are the next batch."""
    from helpers.studies import advance

    found = discreet.open_study(place / "study.db", said["head"])
    assert [str(found.guarantee), found.head, found.users] == list(said.values())
    found.verify()
    yield
    with pytest.raises(StudyError, match="has taken part"):
        advance(found, people=[f"user-{i}" for i in range(found.batch_size)])
    advance(found, seed=2)
    assert found.users > said["users"]
    found.verify()
    assert discreet.open_study(place / "study.db", said["head"]).head == found.head


def ledger(place, said):
    """Both releases of these people are still charged, and the budget is kept."""
    from discreet.privacy.ledger import Cost, Ledger

    people, found = [f"person {i}" for i in range(40)], Ledger(place / "people.ledger")
    with pytest.raises(BudgetError, match="Remaining: epsilon 1, delta 1e-05"):
        found.record(1.5, users=people[:1])
    yield
    account = found.record(1, users=[*people, "another"])
    assert (account.before, account.spent, account.known) == (Cost.of(2), Cost.of(3), 40)


def ledger_of_spellings(place, said):
    """Who stands there as 7 and as 7.0 was charged both, and pays for both from now on."""
    from discreet.privacy.ledger import Cost, Ledger

    for users, spent in (["7"], 1.5), (["7.0", "8"], 1.5), (["9.000000e+00"], 0.5), (["8", "9"], 1):
        with pytest.raises(BudgetError, match=f"Remaining: epsilon {3 - spent:g}, "):
            Ledger(place / "people.ledger").record(4, users=users)
    yield
    Ledger(place / "people.ledger").record(1, users=["another"])
    account = Ledger(place / "people.ledger").record(1, users=["7.00", "8", "9"])
    assert (account.before, account.spent) == (Cost.of(1.5), Cost.of(2.5))
    assert account.known == 3
    assert Ledger(place / "people.ledger").record(0.25, users=[7]).before == Cost.of(2.5)


def study_of_spellings(place, said):
    """Who came as 7 and as 7.0 came twice; 11 came once."""
    from helpers.studies import advance, episodes_of

    found = discreet.open_study(place / "study.db", said["head"])
    for user in ("7", "7.0", 100_000, "1e+05"):
        with pytest.raises(StudyError, match="has taken part 2 times"):
            found.tell(episodes_of(found, 0, 1), users=[user])
    yield
    advance(found, 3, 2, ["11", "0.0"])
    with pytest.raises(StudyError, match="has taken part 2 times"):
        advance(found, 4, 1, ["11.0"])


def policies(place, said):
    for path in sorted(place.iterdir()):
        found, plain = discreet.load_policy(path), json.loads(path.read_bytes())
        assert found.guarantee == plain["guarantee"]
        for row in plain["policy"]:
            assert found.action(row["state"], row["step"]) == row["action"]
    yield


def bundle(place, said):
    """Its own programs check it, and ours its certificate."""
    from discreet.privacy.certificates import verify

    folder = place.parent / "review"
    with zipfile.ZipFile(place / "study.zip") as archive:
        archive.extractall(folder)
    certificate = json.loads((folder / "certificate-0.json").read_bytes())
    assert verify.check(certificate) <= 1e-6
    review = (sys.executable, "-I", "review.py", "--head", FACTS["central"]["head"])
    assert subprocess.run(review, cwd=folder, stdout=subprocess.DEVNULL).returncode == 0
    yield


def charter(place, said):
    from discreet.service.protocol.charter import Charter

    found = Charter.read(place / "charter.json")
    assert [found.id.hex(), found.guarantee] == list(said.values())
    assert found.verify() <= found.delta
    yield


def sqlite_store(place, said):
    yield from store(str(place / "store.db"))


def postgres_store(place, said):
    """The rows are its bytes."""
    psycopg = pytest.importorskip("psycopg")
    from helpers.postgres import Server

    server = Server()
    try:
        address = server.database()
        with psycopg.connect(address) as database:
            database.execute((place / "store.pgsql").read_bytes())
        before = rows(psycopg, address)
        try:
            yield from store(address)
        except DiscreetError:
            assert rows(psycopg, address) == before
            raise
    finally:
        server.stop()


def rows(psycopg, address):
    tables = ("about", "batch", "piece", "report", "sealed", "ticket")
    with psycopg.connect(address) as database:
        return [sorted(database.execute(f"SELECT * FROM {t}").fetchall()) for t in tables]


def store(address):
    """A batch that was open is filled; who was in the one before is still spent."""
    from discreet.service.protocol.charter import Charter
    from discreet.service.shuffler.store import open_store
    from helpers.services import announced, messages, submissions

    found = open_store(address, Charter.read(HERE / "charter" / "charter.json"))
    try:
        found.adopt(on_new=lambda: pytest.fail("it has its charter"))
        one = found.live().announced
        assert (one.manifest.number, found.live().received, found.state(0)) == (1, 2, "done")
        yield
        early, late = submissions(one, [bytes([i]) * 32 for i in (0, 5)])
        assert found.submit([early, late]) == ["ticketSpent", "accepted"]
        assert found.shuffle()
        assert [len(part) // 52 for part in messages(found, 1, one.sizes)] == [
            3 * size for size in one.sizes
        ]
        found.done(1)
        found.announce(announced(found.charter, 2, before=one.manifest))
    finally:
        found.close()


def results(place, said):
    pytest.importorskip("pyarrow")
    found = discreet.load_results(place)
    assert {one.facts["trust"]: one.regret[:, -1].tolist() for one in found.series()} == said
    assert [entry["guarantee"]["notion"] for entry in found.guarantees] == ["none", "JDP"]
    yield


GOES_ON = ""
ROWS = {  # or a word of the sentence that refuses it
    "bundle": (bundle, GOES_ON),
    "central": (study, GOES_ON),
    "central-laplace": (study, GOES_ON),
    "charter": (charter, GOES_ON),
    "continual": (study, "is whole, but .* runs in simulations only: .* flow-ucb, .*tells few"),
    "ledger": (ledger, GOES_ON),
    "ledger-spellings": (ledger_of_spellings, GOES_ON),
    "local-flips": (study, "is for streams; .*goes on with discreet 0.2"),
    "local-gaussian": (study, "is for streams; .*goes on with discreet 0.2"),
    "local-laplace": (study, "is for streams; .*goes on with discreet 0.2"),
    "local-one-step": (study, "is for streams; .*goes on with discreet 0.2"),
    "local-split": (study, GOES_ON),
    "policy": (policies, GOES_ON),
    "run": (results, GOES_ON),
    "shuffle": (study, GOES_ON),
    "spellings": (study_of_spellings, GOES_ON),
    "store-postgres": (postgres_store, GOES_ON),
    "store-sqlite": (sqlite_store, GOES_ON),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_goes_on_or_is_refused_and_opening_changes_nothing(name, tmp_path):
    job, refusal = ROWS[name]
    kept = unpacked(name, tmp_path / "kept")
    going_on = job(tmp_path / "kept", FACTS.get(name))
    if refusal:
        with pytest.raises(Exception, match=refusal):
            next(going_on)
    else:
        next(going_on)
    assert {path: path.read_bytes() for path in kept} == kept
    for _ in going_on:
        pass


def test_every_recorded_file_has_a_row():
    assert {path.name for path in HERE.iterdir() if path.is_dir()} - {"__pycache__"} == set(ROWS)
