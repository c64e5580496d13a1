"""P7, P8 and P12 to P16: what nobody can see, and what is said about the rest."""

import base64
import dataclasses
import io
import json
import logging
import re
import threading
from collections import Counter
from fractions import Fraction
from itertools import permutations

import httpx
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import discreet
from discreet.cli.app import make_app
from discreet.errors import DiscreetError, InvalidInputError
from discreet.mdp.policies import DeterministicPolicy
from discreet.mdp.shape import Shape
from discreet.privacy.costs import usual_batch
from discreet.service.analyser import Analyser, check_study
from discreet.service.client import Client
from discreet.service.demo.run import NOT_PROTECTED
from discreet.service.participant import Chain, Participant, fetch_charter
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import report, ticket
from discreet.service.protocol.charter import Charter
from discreet.service.protocol.problems import Refusal
from discreet.service.setup import Terms, setup_service
from discreet.service.shuffler import store as stores
from helpers.service_analysers import running_study, start_study
from helpers.service_kills import forked, killer
from helpers.services import (
    SIGNER,
    TOKEN,
    MemoryOutbox,
    announced,
    charter,
    fake_report,
    make_test_shuffler,
    manifest,
    messages,
    new_store,
    real_report,
    serving,
    study_design,
    submissions,
)

OF = charter()
ALARM = 1e-9
"""Of one statistical test of the operating system's randomness: below 1e-7 for all together."""
LIVES = [
    {"states": [0, 0, 1], "actions": [0, 1], "rewards": [0.0, 1.0]},
    {"states": [0, 1, 1], "actions": [0, 0], "rewards": [1.0, 0.5]},
    {"states": [1, 1, 0], "actions": [1, 1], "rewards": [0.25, 0.0]},  # left the policy at once
]


def files_of(*folders):
    return [p for folder in folders for p in sorted(folder.rglob("*")) if p.is_file()]


def test_p07_the_shuffler_holds_no_key_that_opens_anything(tmp_path):
    """Its files after a real batch hold neither the batch's key nor the signing key."""
    with running_study(tmp_path) as running:
        analyser, private = running.announced()
        running.send()
        held = b"".join(p.read_bytes() for p in files_of(tmp_path / "shuffler"))
        analyser.close()
    public = analyser.latest().manifest.key
    assert public in held.replace(public.hex().encode(), public)  # the search finds what is there
    for secret in (private, running.key.private_bytes_raw()):
        assert secret not in held and secret.hex().encode() not in held


def test_p08_every_order_is_equally_likely(monkeypatch):
    """Chi-square over all orders of four envelopes, in one bucket and through several."""
    envelopes = np.arange(4, dtype=np.uint8).repeat(52).reshape(4, 52)
    orders = {order: i for i, order in enumerate(permutations(range(4)))}
    for buckets in (1, 2, 8):
        seen = np.zeros(24)
        for _ in range(2_400):
            parts = dict(stores.scatter(envelopes, buckets))
            mixed = b"".join(stores.permuted(parts[b]) for b in sorted(parts))
            seen[orders[tuple(mixed[::52])]] += 1
        assert stats.chisquare(seen).pvalue > ALARM, buckets  # a hundred of each expected


def test_p08_who_sent_which_envelope_is_a_guess(place, monkeypatch):
    """The best guess by position is right as often as chance; rows hold no order of arrival."""
    monkeypatch.setattr(stores, "BUCKET", 200)  # several buckets even here
    store, before, right, asked = new_store(place, OF), None, 0, 0
    for number in range(12):
        one = announced(OF, number, before=before, users=4)
        passes = ticket.make(4)
        store.admit([ticket.digest(x) for x in passes])
        store.announce(one)
        for i, pass_ in enumerate(passes):
            store.submit([report.read(fake_report(one, pass_, b"<%d>" % i))])
        store.shuffle()
        for part, size in zip(messages(store, number, one.sizes), one.sizes, strict=True):
            owners = [int(part[i + 14 : i + 15]) for i in range(0, len(part), 52)]
            right += sum(guess == at // size for at, guess in enumerate(owners))
            asked += len(owners)
        store.done(number)
        before = one.manifest
    store.close()
    # Hits of an order of m envelopes for each of 4 users have the mean of a binomial and 4m/(4m-1)
    # times its variance: a little more than ALARM.
    assert stats.binomtest(right, asked, 1 / 4).pvalue > ALARM


def test_p08_lengths_and_randomness_say_nothing_about_an_episode():
    one = announced(OF)
    assert len({len(real_report(one, bytes(32), life)) for life in LIVES}) == 1
    assert {len(report.read(real_report(one, bytes(32), life)).body) for life in LIVES} == {
        one.body
    }


def test_p08_devices_wait_for_a_random_time(tmp_path):
    """The delay is uniform, and drawn anew for every report."""
    waited, signed = [], announced(OF).signed

    class Nowhere:
        def manifest(self):
            return signed

        def send(self, data):
            raise Refusal("ticketSpent")

    for _ in range(200):
        chain = Chain(OF, Nowhere())
        user = Participant(
            chain, Nowhere(), bytes(32), MemoryOutbox(), delay=60, pause=waited.append
        )
        user.attempt(lambda _: LIVES[0])
    assert stats.kstest(waited, stats.uniform(0, 60).cdf).pvalue > ALARM


@pytest.mark.parametrize("honest", [1.0, 0.9, 0.55])
@pytest.mark.parametrize("users", [20, 113, 5_000])
def test_p12_devices_add_the_noise_that_the_plan_accounts_for(honest, users):
    shape = Shape(states=3, actions=2, horizon=4)
    plan = usual_batch(discreet.Shuffle(1, 1e-6, honest=honest), shape, None)
    of = charter(
        names={"states": "abc", "actions": "xy", "steps": "1234"},
        start=(0, 2),
        mean=plan.mean,
        honest=Fraction(str(honest)),
    )
    rng = np.random.default_rng(users)
    policy = DeterministicPolicy(rng.integers(0, 2, (4, 3)))
    support = policy.support(shape, np.array([True, False, True]))
    device = of.device(policy.actions.tolist(), users)
    assert device.groups == plan.groups(users, support)
    of.check_noise(users, device.groups)


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_p12_a_manifest_that_states_other_noise_is_refused_by_everybody(tmp_path, row, column):
    """Device, shuffler and verification read it through one function; the analyser is no friend."""
    layout = [list(one) for one in announced(OF).manifest.layout]
    for change in (-1, 1):
        layout[row][column] += change
        signed = manifest(OF, layout=layout).signed(SIGNER)
        with pytest.raises(Refusal, match="noise is not what the charter"):
            manifests.read(signed, OF)
        layout[row][column] -= change


def test_p12_a_shuffler_checks_what_a_batch_really_adds():
    """Too little noise in the groups themselves would be found, too."""
    one = announced(OF)
    OF.check_noise(3, one.device.groups)
    for weak in (
        [c._replace(noise=max(1, c.noise // 2)) for c in one.device.groups],
        [c._replace(weight=c.weight * 9 // 10) for c in one.device.groups],
    ):
        with pytest.raises(InvalidInputError, match="Expected noise of mean"):
            OF.check_noise(3, weak)


@pytest.mark.parametrize(
    "change",
    [
        {"mean": OF.mean * Fraction(999, 1000)},
        {"epsilon": Fraction(3)},
        {"delta": Fraction(1, 100_000)},
        {"statistics": ("transitions", "rewards", "visits")},
        {"last_transitions": True},
        {"certificate": {}},
        {"certificate": {**OF.certificate, "bound": "2/10000"}},
        {"honest": Fraction(1, 2)},
        {"names": {"states": "abc", "actions": "xy", "steps": "12"}},
        {"names": {"states": "ab", "actions": "xyz", "steps": "12"}},
        {"names": {"states": "ab", "actions": "xy", "steps": "123"}},
    ],
)
def test_p12_a_charter_without_its_own_proof_is_refused(tmp_path, change):
    of = charter(**change)
    with pytest.raises(InvalidInputError, match="certificate"):
        make_test_shuffler_checked(tmp_path / "s.db", of)


def make_test_shuffler_checked(place, of):
    from discreet.service.shuffler.shuffler import Shuffler
    from discreet.service.shuffler.store import open_store

    return Shuffler(of, lambda: open_store(str(place), of), token_digests=[bytes(32)])


def test_p12_a_proof_is_checked_once_per_charter(tmp_path, monkeypatch):
    calls = []
    verify = type(OF).verify
    monkeypatch.setattr(type(OF), "verify", lambda self: calls.append(1) or verify(self))
    for _ in range(2):
        one = make_test_shuffler_checked(tmp_path / "s.db", OF)
        one._thread.submit(one.store.close).result()
    assert calls == [1]


def test_p12_a_study_with_other_noise_than_its_charter_cannot_be_analysed(tmp_path):
    of, folder, _ = start_study(tmp_path)
    study = discreet.open_study(folder / "study.db")
    check_study(of, study)
    for other in (
        dataclasses.replace(of, mean=of.mean * 2),
        dataclasses.replace(of, start=(0, 1)),
        dataclasses.replace(of, honest=Fraction(1, 2)),
        dataclasses.replace(of, rehearsal=True),
    ):
        with pytest.raises(DiscreetError, match=r"same groups|says it is a rehearsal"):
            check_study(other, study)


def test_p13_noise_comes_from_the_operating_system_and_cannot_be_seeded(tmp_path):
    chain = Chain(OF, None)
    with pytest.raises(InvalidInputError, match="draws from the operating system"):
        Participant(chain, None, bytes(32), MemoryOutbox(), draws=object())
    with pytest.raises(InvalidInputError, match="cannot be seeded"):
        setup_service(
            tmp_path / "x",
            Terms(),
            study_design(discreet.Shuffle(4, 1e-4, honest=0.95), seed=1),
        )
    one = announced(OF)
    assert real_report(one, bytes(32)) != real_report(one, bytes(32))
    cells = {str(one.device.encode(LIVES[0])) for _ in range(20)}
    assert len(cells) == 20


def test_p13_a_rehearsal_is_refused_unless_asked_for_and_stamped_everywhere(tmp_path):
    of = charter(rehearsal=True)
    assert of.id != OF.id and of.guarantee.startswith("SIMULATED, protects nobody")
    assert "SIMULATED" not in OF.guarantee
    with pytest.raises(InvalidInputError, match="--rehearsal"):
        make_test_shuffler(tmp_path / "s.db", of)
    with (
        serving(make_test_shuffler(tmp_path / "s.db", of, rehearsal=True)) as url,
        Client(url) as client,
    ):
        with pytest.raises(InvalidInputError, match="--rehearsal"):
            fetch_charter(client, of.id)
        assert fetch_charter(client, of.id, rehearsal=True).rehearsal
        with pytest.raises(InvalidInputError, match="expected"):
            fetch_charter(client, OF.id)
    secure, folder, key = start_study(tmp_path)
    rehearsed = dataclasses.replace(secure, rehearsal=True)
    with pytest.raises(DiscreetError, match="says it is a rehearsal"):
        Analyser(rehearsed, discreet.open_study(folder / "study.db"), None, key, folder)


MARK = b"<planted-mark>"


@pytest.fixture
def files(place, request, tmp_path):
    """The folder in which a store writes."""
    if place.startswith("postgresql"):
        return request.getfixturevalue("postgres_server").data / "base"
    return tmp_path


def marked(place, users):
    """A store with reports of a mark in every envelope."""
    store, one, passes = new_store(place, OF), announced(OF), ticket.make(users)
    store.admit([ticket.digest(x) for x in passes])
    store.announce(one)
    store.submit(submissions(one, passes, MARK))
    return store


def test_p15_bodies_and_keys_are_gone_after_done(place, files):
    """A search of all files for a mark that stood in every envelope."""
    store = marked(place, 3)
    written(store)
    assert found_in(files)
    store.shuffle()
    store.done(0)
    written(store)
    assert not found_in(files)
    store.close()
    assert not found_in(files)


def test_p15_bodies_of_an_expired_batch_are_gone(place, files):
    store = marked(place, 2)
    store.expire(0)
    written(store)
    assert not found_in(files)
    store.close()


@pytest.mark.parametrize("point", ["submit", "scatter", "gather", "seal", "done", "expire"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_p15_a_kill_leaves_no_bodies_behind(tmp_path, point, when):
    """Killed before or after a commit, started again, brought to its end: no file holds a mark."""
    path, one, passes = tmp_path / "s.db", announced(OF), ticket.make(3)

    def life(at=lambda _: None):
        store = new_store(path, OF, passes, at)
        if not store.totals()["batches_done"] + store.totals()["batches_expired"]:
            store.announce(one)
            sent = passes[:2] if point == "expire" else passes
            for pass_ in sent:
                store.submit(submissions(one, [pass_], MARK))
            if point == "expire":
                store.expire(0)
            else:
                store.shuffle()
                store.done(0)
        assert not found_in(tmp_path)  # while it is open: closing it would empty its log anyway
        store.close()

    assert not forked(lambda: life(killer(f"{point}.{when}")))
    life()
    assert not found_in(tmp_path)


@pytest.mark.parametrize("point", ["tell.after", "destroy.before", "destroy.after"])
def test_p15_a_killed_analyser_leaves_no_key_behind(tmp_path, point):
    with running_study(tmp_path) as running:
        analyser, private = running.announced()
        analyser.close()
        running.send()
        while running.survives(point):
            threading.Event().wait(0.02)
        analyser = running.analyser()
        analyser.step()
        analyser.close()
        assert running.client.metrics()["batches_done"] == 1
    held = b"".join(p.read_bytes() for p in files_of(running.folder))
    for form in (private, private.hex().encode(), base64.b64encode(private)[:42]):
        assert form not in held


def written(store):
    """Let PostgreSQL write its pages, so that a search of files sees them."""
    if hasattr(store, "_address"):
        store._connected().execute("CHECKPOINT")


def found_in(folder):
    found = []
    for path in files_of(folder):
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # a file that the server has just given back
            continue
        found += [path.name] if MARK in data else []
    return found


def test_p15_the_key_is_overwritten_and_gone(tmp_path):
    with running_study(tmp_path) as running:
        analyser, private = running.announced()
        running.send()
        while analyser.step() != "counted":
            threading.Event().wait(0.02)
        analyser.close()
    held = b"".join(p.read_bytes() for p in files_of(running.folder))
    assert private not in held and private.hex().encode() not in held


def test_p16_logs_and_metrics_hold_no_ids_and_no_cells(tmp_path):
    """Everything that can be sent is sent, and something breaks; nothing of it is in the logs."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    passes = ticket.make(4)
    try:
        shuffler = make_test_shuffler(tmp_path / "s.db", OF, passes[:3])
        one = announced(OF)
        with serving(shuffler) as url, Client(url, TOKEN) as client:
            client.announce(0, one.signed)
            bodies = [fake_report(one, x, MARK) for x in passes]
            for body in [*bodies, bodies[0], bodies[0][:-1], b"", MARK * 100]:
                sent_anyhow(client, body)
            shuffler.store.submit = lambda _: 1 / 0
            sent_anyhow(client, bodies[3])
            metrics = client._ask("GET", "/metrics").decode()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    ours = [line for line in stream.getvalue().splitlines() if "HTTP Request" not in line]
    text = "\n".join(ours) + metrics
    assert "ZeroDivisionError" in text  # accidents are noted, by their kind
    secrets_ = [MARK, *passes, *(ticket.digest(x) for x in passes)]
    for secret in secrets_:
        for form in (secret.hex(), repr(secret)[2:-1]):
            assert form not in text


def sent_anyhow(client, body):
    try:
        client.send(body)
    except DiscreetError as error:
        assert MARK.decode() not in str(error)


def said(*words):
    """What a command prints."""
    done = CliRunner().invoke(make_app(), ["service", *map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_p14_what_collusion_gives_is_printed(tmp_path):
    """By every command that shows a promise, to people and to scripts; at the page; in the demo."""
    words = ("--states", 2, "--actions", 2, "--steps", 2, "--start", 0, "--episodes", 40)
    words = (*words, "--epsilon", 4, "--delta", 1e-4, "--honest", 0.9)
    shows = [said("init", tmp_path / "a", *words)]
    tells = [said("init", tmp_path / "b", *words, "--json")]
    of = Charter.from_bytes((tmp_path / "a" / "charter.json").read_bytes())
    path = tmp_path / "a" / "charter.json"
    with serving(make_test_shuffler(tmp_path / "s.db", of)) as url:
        page = httpx.get(url + "/", verify=False).text
        shows += [said("verify", path), said("status", "--url", url)]
        tells += [said("verify", path, "--json"), said("status", "--url", url, "--json")]
    everybody = of.collusion
    assert "no protection: together they see every episode" in everybody.values()
    assert "up to 10% of a batch's users with analyser" in everybody
    for text in shows:
        words = Counter(re.findall(r"[a-z]+", text.lower()))
        wanted = re.findall(r"[a-z]+", " ".join((*everybody, *everybody.values())).lower())
        assert not Counter(wanted) - words  # lines are broken where they must be
    assert all(json.loads(text)["collusion"] == everybody for text in tells)
    assert "together they see every episode" in page and "invented users" in page
    assert any("collude" in line for line in NOT_PROTECTED)
