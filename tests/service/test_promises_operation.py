"""P9 to P11 and P18 to P20: who may ask what, bad input, time, versions, and the end."""

import ast
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
import discreet.service
from discreet.errors import InvalidInputError, StudyError
from discreet.service import configs, verification, worker
from discreet.service.client import Client, UnreachableError
from discreet.service.opening import open_cells
from discreet.service.participant import Chain, Participant
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report, ticket
from discreet.service.protocol.canonical import from_bytes
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.problems import PROBLEMS, Refusal, document
from discreet.service.shuffler import server
from discreet.service.shuffler.sqlite import SqliteStore
from discreet.service.shuffler.store import StoreBusyError, open_store
from helpers.clocks import ManualClock
from helpers.faults import KINDS, FaultProxy
from helpers.service_analysers import running_study
from helpers.services import (
    GOLDEN,
    NOW,
    SIGNER,
    TOKEN,
    MemoryOutbox,
    announced,
    batch_key,
    charter,
    content,
    fake_report,
    filled,
    make_test_shuffler,
    manifest,
    messages,
    new_store,
    serving,
)
from helpers.studies import sql

OF = charter()
HTTP = httpx.Client(verify=False, timeout=120)
"""No certificates are read for a loopback address."""
ANALYSERS = [
    ("PUT", "/v1/batches/0"),
    ("GET", "/v1/batches/0"),
    ("GET", "/v1/batches/0/messages/0"),
    ("POST", "/v1/batches/0/done"),
]
EVERYBODYS = [
    ("GET", "/v1/charter"),
    ("GET", "/v1/manifest"),
    ("GET", "/v1/manifests/0"),
    ("POST", "/v1/reports"),
    ("GET", "/livez"),
    ("GET", "/metrics"),
]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A shuffler with an open batch; its address and its store's file."""
    path = tmp_path_factory.mktemp("live") / "s.db"
    shuffler = make_test_shuffler(path, OF, ticket.make(3))
    with serving(shuffler) as url, Client(url, TOKEN) as client:
        client.announce(0, announced(OF).signed)
        yield url, path


@pytest.mark.parametrize("method,path", ANALYSERS)
@pytest.mark.parametrize(
    "given_",
    [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"],
)
def test_p09_the_analysers_endpoints_take_nobody_else(live, method, path, given_):
    url, database = live
    before = content(database)
    headers = {} if given_ is None else {"authorization": given_}
    answer = HTTP.request(method, url + path, headers=headers, content=announced(OF).signed)
    assert answer.status_code == 401 and answer.json()["code"] == "unauthorised"
    assert content(database) == before


@pytest.mark.parametrize("method,path", EVERYBODYS)
def test_p09_public_endpoints_are_the_same_with_a_token(live, method, path):
    url, _ = live
    answers = [
        HTTP.request(method, url + path, headers=headers, content=b"x")
        for headers in ({}, {"authorization": f"Bearer {TOKEN}"}, {"authorization": "Bearer no"})
    ]
    # The disk and the clock go on between two requests.
    moving = (b"discreet_bytes_free", b"discreet_batch_age", b"discreet_batch_seconds")
    same = {
        (a.status_code, *(line for line in a.content.splitlines() if not line.startswith(moving)))
        for a in answers
    }
    assert len(same) == 1
    assert answers[0].status_code != 401


@pytest.mark.parametrize("path", [path for _, path in ANALYSERS + EVERYBODYS] + ["/v1/nothing"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
def test_p09_no_other_method_does_anything(live, method, path):
    url, database = live
    if (method, path) in ANALYSERS + EVERYBODYS:
        return
    before = content(database)
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = HTTP.request(method, url + path, headers=headers)
    expected = (404, "notFound") if path == "/v1/nothing" else (405, "notAllowed")
    assert (answer.status_code, answer.json()["code"]) == expected
    assert ("allow" in answer.headers) == (answer.status_code == 405)
    assert content(database) == before


QUIET = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@QUIET
@given(
    data=st.binary(max_size=3_000) | st.binary(min_size=64, max_size=64).map(lambda b: b"\1" + b)
)
def test_p10_any_bytes_as_a_report_are_refused_by_name(live, data):
    url, database = live
    before = content(database)
    answer = HTTP.post(url + "/v1/reports", content=data)
    assert answer.headers["content-type"] == "application/problem+json"
    code = answer.json()["code"]
    assert answer.status_code == PROBLEMS[code].status and 400 <= answer.status_code < 500
    assert answer.content == document(code)
    assert content(database) == before


def edited(draw, data):
    at = draw(st.integers(0, len(data) - 1))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "double"]))
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
    if kind == "cut":
        return data[:at]
    return data[:at] + (data[at:] if kind == "double" else draw(st.binary(min_size=1))) + data[at:]


@QUIET
@given(draws=st.data())
def test_p10_an_edited_manifest_is_refused_by_everybody(live, draws):
    url, database = live
    before = content(database)
    bad = edited(draws.draw, announced(OF).signed)
    with pytest.raises(Refusal):
        manifests.read(bad, OF)
    answer = HTTP.put(
        url + "/v1/batches/0", content=bad, headers={"authorization": f"Bearer {TOKEN}"}
    )
    assert 400 <= answer.status_code < 500 and answer.json()["code"] in PROBLEMS
    assert content(database) == before


@QUIET
@given(draws=st.data())
def test_p10_an_edited_charter_is_no_charter_or_another_study(draws):
    bad = edited(draws.draw, OF.data)
    try:
        other = Charter.from_bytes(bad)
    except InvalidInputError:
        return
    assert other.id != OF.id


@pytest.mark.parametrize(
    "change",
    [
        {"number": True},
        {"users": "3"},
        {"users": -3},
        {"policy": [[0, 9], [1, 0]]},
        {"policy": [[0]]},
        {"policy": None},
        {"policy": "ab"},
        {"policy": [None, None]},
        {"layout": {"a": 1}},
        {"layout": []},
        {"study": "00"},
        {"key": "zz"},
        {"more": 1},
        {"version": 2},
        {"deadline": 1.5},
    ],
)
def test_p10_a_signed_manifest_of_nonsense_is_refused(change):
    fields = from_bytes(manifest(OF).data, "manifest") | change
    data = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    signature = SIGNER.sign(b"discreet-manifest/1\n" + data).hex().encode()
    with pytest.raises(Refusal) as caught:
        manifests.read(signature + b"\n" + data, OF)
    assert caught.value.code == ("unknownVersion" if "version" in change else "badManifest")


def test_p10_bodies_are_bounded(live):
    url, _ = live
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as huge:
        huge.sendall(b"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        assert b"tooLarge" in until_closed(huge, b"tooLarge")

    def endless():
        for _ in range(600):
            yield bytes(1 << 16)

    try:
        answer = HTTP.post(url + "/v1/reports", content=endless())
        assert answer.json()["code"] in ("tooLarge", "tooSlow")
    except httpx.TransportError:
        pass  # cut while it was still sending


def test_p10_slow_clients_are_cut(tmp_path):
    """A server of its own is so impatient: with others a busy machine would be too slow."""
    database = tmp_path / "s.db"
    head = b"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n"
    with serving(make_test_shuffler(database, OF, ticket.make(3)), body_seconds=0.5) as url:
        before = content(database)
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(place) as slow:
            slow.sendall(head + b"\1")
            assert b"tooSlow" in until_closed(slow, b"tooSlow")
        assert content(database) == before


def until_closed(connection, mark=None):
    """All that comes before the other side hangs up, or says something."""
    connection.settimeout(120)
    data = b""
    while part := connection.recv(65536):
        data += part
        if mark is not None and mark in data:
            break
    return data


def test_p11_any_edit_of_the_ledger_is_found(tmp_path):
    with running_study(tmp_path) as running:
        of, folder, analyser = running.of, running.folder, running.analyser()
        rest = iter(running.passes)
        while analyser.study.batches < 2:
            analyser.step()
            running.send(rest)
        analyser.close()
    path, signed = folder / "study.db", verification.read_manifests(folder / "manifests")
    study = discreet.open_study(path)
    chain = verification.check_chain(of, signed)
    assert verification.check_ledger(study, chain) == 2
    with pytest.raises(InvalidInputError, match="not the one it follows"):
        verification.check_ledger(study, chain[1:])
    with pytest.raises(Refusal, match="badManifest"):
        verification.check_chain(of, signed[1:])
    whole = path.read_bytes()
    for edit in (
        "UPDATE ledger SET entry = replace(entry, '\"batch\":1', '\"batch\":2')",
        "DELETE FROM ledger WHERE number = 2",
        "DELETE FROM ledger WHERE number = 1",
        "UPDATE evidence SET data = x'00' WHERE name = (SELECT min(name) FROM evidence)",
        "DELETE FROM users",
    ):
        sql(path, edit)
        with pytest.raises(StudyError):
            discreet.open_study(path)
        path.write_bytes(whole)
    discreet.open_study(path).verify()


def test_p18_time_comes_from_the_clock_that_is_handed_in():
    """No other file of a role looks at a clock (the demo, which plays all of them, may)."""
    folder = pathlib.Path(discreet.service.__file__).parent
    roles = [path for path in folder.rglob("*.py") if path.parent.name != "demo"]
    assert len(roles) > 15
    for path in roles:
        imported = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
        clocks = imported & {"time", "datetime", "calendar"}
        assert not clocks or path.name == "configs.py", path


def test_p18_a_clock_that_goes_backwards_harms_nobody(tmp_path):
    clock, passes, one = ManualClock(NOW), ticket.make(3), announced(OF)
    with (
        serving(make_test_shuffler(tmp_path / "s.db", OF, passes, clock=clock)) as url,
        Client(url, TOKEN) as client,
    ):
        clock.move(600)
        with pytest.raises(Refusal, match="badDeadline"):
            client.announce(0, one.signed)  # its deadline is past
        clock.move(-1200)
        with pytest.raises(Refusal, match="badDeadline"):
            client.announce(0, one.signed)  # beyond the charter's patience
        clock.move(600)
        client.announce(0, one.signed)
        clock.move(-10_000_000)
        for pass_ in passes:
            client.send(fake_report(one, pass_))
        while client.metrics()["batches_sealed"] == 0:
            threading.Event().wait(0.02)


def test_p19_charter_and_manifest_are_read_for_ever():
    data = (GOLDEN / "charter.json").read_bytes()
    of = Charter.from_bytes(data)
    assert of == OF and of.data == data
    assert of.id.hex() == hashlib.sha256(data).hexdigest()
    assert of.verify() <= of.delta
    signed = (GOLDEN / "manifest.txt").read_bytes()
    one = manifests.read(signed, of)
    assert one.manifest == manifest(OF) and one.manifest.signed(SIGNER) == signed


def test_p19_a_report_opens_for_ever():
    data = bytes.fromhex((GOLDEN / "report.hex").read_text())
    one = announced(OF)
    found = report.read(data)
    assert found.digest == hashlib.sha256(bytes(range(32))).digest()
    assert found.manifest == one.hash
    first = 0
    for place, c in enumerate(one.device.groups):
        part = found.body[52 * first : 52 * (first + c.messages)]
        cells = open_cells(part, batch_key(0), one.hash, place, c.cells)
        assert cells.tolist() == [(3 * place + j) % (c.cells + 1) for j in range(c.messages)]
        first += c.messages


@pytest.mark.parametrize("version", [2, 4])
def test_p19_a_store_of_another_version_is_refused_and_stays_as_it_is(place, version):
    """One of this version goes on: `tests/recorded`."""
    new_store(place, OF, ticket.make(2)).close()
    change = f"UPDATE about SET version = {version}, charter = ''"
    if place.startswith("postgresql"):
        import psycopg

        with psycopg.connect(place) as database:
            database.execute(change)
        kept = lambda: None  # noqa: E731
    else:
        sql(place, change)
        kept = pathlib.Path(place).read_bytes
    before, store = kept(), open_store(place, OF)
    with pytest.raises(InvalidInputError, match=f"is of version {version}, .* of version 3; go on"):
        store.adopt(on_new=lambda: pytest.fail("it has its charter"))
    assert store._execute("SELECT version FROM about") == [(version,)]
    store.close()
    assert kept() == before


def test_p19_unknown_versions_are_refused(tmp_path):
    text = OF.data.replace(b'"version":1', b'"version":2')
    with pytest.raises(InvalidInputError, match="unknownVersion"):
        Charter.from_bytes(text)
    with pytest.raises(Refusal, match="unknownVersion"):
        report.read(b"\2" + fake_report(announced(OF), bytes(32))[1:])
    sql(tmp_path / "other.db", "CREATE TABLE other (x)")
    with pytest.raises(InvalidInputError, match="another program"):
        SqliteStore(str(tmp_path / "other.db"), OF)


ROLE = """
import sys, logging
from discreet.cli.app import main
sys.argv = ["discreet", "service", *sys.argv[1:]]
main()
"""


HUNG_UP = (
    """
import signal
from discreet.service.shuffler import server

class Interrupted(server.Studies):
    def __init__(self, studies):
        super().__init__(studies)
        self.job = studies[0][0]._thread

    async def __call__(self, scope, receive, send):
        if scope.get("path") == "/livez":  # the signal comes while this thread hands over a job
            with self.job._shutdown_lock:
                signal.raise_signal(signal.SIGHUP)
        await super().__call__(scope, receive, send)

server.Studies = Interrupted
"""
    + ROLE
)


def test_p29_a_running_shuffler_reads_its_tickets_again_on_sighup(tmp_path, port):
    """At whatever moment it comes: while the event loop holds a lock, too."""
    from discreet.service.setup import Terms, make_tickets, setup_service
    from helpers.services import study_design

    url = f"http://127.0.0.1:{port}"
    terms, trust = Terms(rehearsal=True), discreet.Shuffle(4, 1e-4, honest=0.95)
    one = setup_service(tmp_path / "x", terms, study_design(trust), url=url)
    command = [sys.executable, "-c", HUNG_UP, "shuffler", "--config", str(one.config("shuffler"))]
    process = subprocess.Popen([*command, "--rehearsal"], stderr=subprocess.DEVNULL)
    try:
        with Client(url) as client:
            while tickets_of(client) is None:
                assert process.poll() is None
                threading.Event().wait(0.1)
            assert tickets_of(client) == 0
            make_tickets(one.folder, 7)
            for wanted in (7, 12):
                process.send_signal(signal.SIGHUP)
                while tickets_of(client) != wanted:
                    assert process.poll() is None
                    threading.Event().wait(0.1)
                make_tickets(one.folder, 5)
            assert httpx.get(f"{url}/livez", timeout=60).status_code == 200
            while tickets_of(client) != 17:
                assert process.poll() is None
                threading.Event().wait(0.1)
    finally:
        process.kill()
        process.wait()


def tickets_of(client):
    try:
        return client.metrics()["tickets"]
    except UnreachableError:
        return None


def test_p20_sigterm_ends_every_role(tmp_path, port):
    """Also while somebody holds a connection open and says nothing."""
    from discreet.service.setup import Terms, setup_service
    from helpers.services import study_design

    url = f"http://127.0.0.1:{port}"
    one = setup_service(
        tmp_path / "x",
        Terms(rehearsal=True),
        study_design(discreet.Shuffle(4, 1e-4, honest=0.95)),
        url=url,
    )
    processes = []
    for role in ("shuffler", "analyser"):
        command = [sys.executable, "-c", ROLE, role, "--config", str(one.config(role))]
        processes.append(subprocess.Popen([*command, "--rehearsal"], stderr=subprocess.PIPE))
    try:
        with Client(url) as client:
            while not announced_by_now(client):
                assert all(p.poll() is None for p in processes)
                threading.Event().wait(0.1)
        with socket.create_connection(("127.0.0.1", port)) as idle:
            idle.sendall(b"POST /v1/reports HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n")
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(300) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.stderr.close()
            process.wait()
    assert codes[1] == 0 and codes[0] in (0, -signal.SIGTERM)


def test_p20_an_analyser_that_cannot_go_on_ends_with_a_code_that_systemd_counts(tmp_path):
    """Its key is lost: no start mends that, so the unit's limit of failures has to stop it."""
    from discreet.service.setup import Terms, make_tickets, setup_service
    from helpers.services import study_design

    terms, trust = Terms(rehearsal=True), discreet.Shuffle(4, 1e-4, honest=0.95)
    one = setup_service(tmp_path / "x", terms, study_design(trust))
    make_tickets(one.folder, 3)
    config = configs.ShufflerConfig.read(one.config("shuffler"))
    with serving(server.make_shuffler(config, rehearsal=True)) as url:
        file = one.config("analyser")
        file.write_text(file.read_text().replace("http://127.0.0.1:8700", url))
        settings_ = configs.AnalyserConfig.read(file)
        analyser = worker.make_analyser(settings_, rehearsal=True)
        assert analyser.step() == "waiting"
        analyser.close()
        for key in (one.folder / "analyser" / "keys").iterdir():
            key.unlink()
        words = ["analyser", "--config", str(file), "--rehearsal"]
        command = [sys.executable, "-c", ROLE, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode > 0 and "`discreet service abandon --config FILE`" in done.stderr
    assert "Traceback" not in done.stderr
    unit = pathlib.Path(__file__).parents[2] / "examples" / "service" / "discreet-analyser.service"
    text = unit.read_text()
    assert "\nRestart=on-failure\n" in text and "StartLimitBurst=" in text
    assert "SuccessExitStatus" not in text


def test_p20_sigterm_ends_a_device_that_waits_and_its_report_stays(tmp_path):
    """Devices wait for minutes before they send; the same bytes are sent by the next start."""
    of, passes = charter(rehearsal=True), ticket.make(3)
    one, folder = announced(of), tmp_path / "device"
    folder.mkdir()
    life = {"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]}
    (folder / "life.json").write_text(json.dumps(life))
    shuffler = make_test_shuffler(tmp_path / "s.db", of, passes, rehearsal=True)
    with serving(shuffler) as url, Client(url, TOKEN) as client:
        client.announce(0, one.signed)
        settings_ = configs.template("device", study=of.id.hex(), url=url)
        (folder / "device.toml").write_text(settings_.replace("delay = 60.0", "delay = 86400.0"))
        words = ["device", "--config", str(folder / "device.toml"), "--rehearsal"]
        words += ["--ticket", passes[0].hex(), "--episode", str(folder / "life.json")]
        process = subprocess.Popen([sys.executable, "-c", ROLE, *words])
        try:
            while not list(folder.glob("outbox/*.report")):
                assert process.poll() is None
                threading.Event().wait(0.05)
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) != 0
        finally:
            process.kill()
            process.wait()
        assert client.metrics()["received"] == 0
        (left,) = folder.glob("outbox/*.report")
        client.send(left.read_bytes())
        assert client.metrics()["received"] == 1


def test_p20_sigterm_ends_an_analyser_in_the_middle_of_a_step(monkeypatch, tmp_path):
    """A step that would go on for ever is given up; whatever is killed here loses nothing."""
    closed = []

    class Busy:
        def run(self, pause, until, look):
            os.kill(os.getpid(), signal.SIGTERM)
            while True:
                pause(0.01)

        def close(self):
            closed.append(True)

    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(worker, "make_analyser", lambda *_, **__: Busy())
    monkeypatch.setattr(worker, "GRACE", 1)
    names = {"charter": "c", "study": "s", "signing_key": "k", "token_file": "t"}
    config = configs.AnalyserConfig(folder=tmp_path, url="http://127.0.0.1:9", **names)
    try:
        assert worker.analyse(config) == "told to end"
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert closed


def test_p20_a_sealing_under_way_is_given_up_and_done_by_the_next_start(place):
    store = new_store(place, OF)
    one, _ = filled(store, OF)
    store.end()
    with pytest.raises(StoreBusyError):
        store.shuffle()
    assert store.live().state == "full"
    store.close()
    store = new_store(place, OF)
    assert store.shuffle()
    assert len(messages(store, 0, one.sizes)[0]) == 52 * 3 * one.sizes[0]
    store.close()


def announced_by_now(client):
    try:
        client.manifest()
    except (UnreachableError, Refusal):
        return False
    return True


def test_nothing_is_lost_or_doubled_behind_a_faulty_network(place):
    """Requests and answers are lost, doubled, cut and delayed; each user is counted once."""
    passes = ticket.make(16)
    one = announced(OF, users=16)
    with serving(make_test_shuffler(place, OF, passes)) as url, Client(url, TOKEN) as client:
        client.announce(0, one.signed)
        with FaultProxy(int(url.rpartition(":")[2]), rate=0.7, seed=4) as proxy:
            encoded = sum(behind_a_proxy(proxy.url, pass_) for pass_ in passes)
        while client.metrics()["batches_sealed"] == 0:
            threading.Event().wait(0.02)
        totals = client.metrics()
    assert {*KINDS, ""} == set(proxy.faults)
    assert totals["tickets_spent"] == 16 and encoded == 16


def behind_a_proxy(url, pass_):
    """Insist until the report is in; how often the device encoded."""
    plays = []
    life = {"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]}
    outbox = MemoryOutbox()
    while True:
        http = httpx.Client(timeout=60, headers={"connection": "close"}, verify=False)
        with Client(url, http=http) as client:
            user = Participant(Chain(OF, client), client, pass_, outbox)
            try:
                state = user.attempt(lambda _: plays.append(1) or life)
            except UnreachableError:
                continue
        if state in ("accepted", "ticketSpent"):
            return len(plays)
        if state == "noOpenBatch" and plays:
            return len(plays)
