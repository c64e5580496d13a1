"""The dossier as a page: self-contained, complete, its numbers the study's, rehearsals named."""

import base64
import json
import math
import re
from html import unescape
from html.parser import HTMLParser

import pytest

import discreet
from discreet.errors import StudyError
from discreet.privacy.guarantee import NOTIONS, REHEARSED, rounded_noise
from discreet.study.dossier import facts, page
from discreet.study.dossier.bundle import finished, members
from discreet.study.dossier.evidence import Examined, Proof
from discreet.study.dossier.page import in_numbers
from helpers.dossiers import page_of, retold, small, told
from helpers.studies import everything_in, sql

NO_PROOFS: tuple = ([], None)


class Balanced(HTMLParser):
    """Every tag that opens closes."""

    VOID = ("meta", "link", "br", "rect")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag, tag


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A rehearsal with one batch."""
    made = small(tmp_path_factory.mktemp("dossier") / "study.db")
    told(made, 0)
    return made


@pytest.fixture(scope="module")
def files(study):
    return members(study, *facts.gather(study, lambda _: None))


@pytest.fixture(scope="module")
def text(files):
    return page_of(files)


def test_it_is_one_page_that_needs_nothing_else(text):
    checker = Balanced()
    checker.feed(text)
    assert checker.open == []
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "<script" not in text and "url(" not in text
    assert 'name="viewport"' in text and "@media print" in text


def test_the_first_minute_comes_first(text):
    cards = [text.index(f"<h2>{name}</h2>") for name in (
        "Who is trusted", "What is guaranteed", "What is not protected")]  # fmt: skip
    assert cards == sorted(cards)
    assert cards[-1] < text.index("<h2>1. ")
    assert [int(n) for n in re.findall(r"<h2>(\d+)\. ", text)] == list(range(1, 12))


def test_a_rehearsal_says_so_in_every_table_and_above_the_signature(text):
    assert page.SIMULATED == REHEARSED
    assert text.count(f"<caption>{REHEARSED}</caption>") == text.count("<table>")
    assert text.count('<div class="banner">') == 4


def test_a_secure_study_does_not(tmp_path):
    said = page_of(members(small(tmp_path / "study.db", sampler="secure", seed=None), *NO_PROOFS))
    assert "SIMULATED" not in said
    assert "of the operating system" in said


def test_names_and_facts_are_escaped(files, text):
    """Those of states, actions and steps; the file's is escaped for the shell, too."""
    assert "ill &lt;b&gt;" in text and "treat &amp; see" in text
    assert "ill <b>" not in text and "treat & see" not in text
    name, note = "a; <rm> -r b.db", "declared & contradicted"
    told = retold(files, name=name, notes=[note], ending=name, made=name, expected=name,
                  software={"discreet": name}, settings={name: name}, missing=[name],
                  noise=[[name, name]], assumptions=[name], sources=name)  # fmt: skip
    assert "discreet study verify 'a; <rm> -r b.db' --head" in unescape(page_of(told, 10))
    assert '<p class="fails">declared &amp; contradicted</p>' in page_of(told, 7)
    data = json.loads(files["certificate-0.json"])
    data |= {"noise": data["noise"] | {"name": name}, "digest": name}
    data["release"] |= {"mechanism": name, "statistics": [name]}
    edited = finished(told | {"certificate-0.json": json.dumps(data).encode()})
    assert "<rm>" not in page_of(told) + page_of(edited)
    lines = files["ledger.jsonl"].replace(b"(1, 0)-JDP", b"(<rm>, 0)-JDP")
    with pytest.raises(ArithmeticError):
        finished(files | {"ledger.jsonl": lines})


def test_nothing_secret_is_on_it(study, text):
    assert study._key.hex() not in text
    assert "user-0" not in text


def test_who_guarantees_nothing_says_so(tmp_path):
    study = small(tmp_path / "study.db", discreet.NoPrivacy())
    before = everything_in(tmp_path)
    said = page_of(members(study, *facts.gather(study, lambda _: None)))
    assert everything_in(tmp_path) == before
    assert "Nothing is guaranteed: there is nothing to audit." in said
    assert REHEARSED not in said.replace(f"<td>{REHEARSED}</td>", "")  # no promise, no rehearsal


def test_a_file_that_was_edited_gets_no_dossier(tmp_path):
    study = small(tmp_path / "study.db")
    sql(study.path, "UPDATE ledger SET entry = replace(entry, 'start', 'begin')")
    with pytest.raises(StudyError, match="edited or damaged"):
        study.bundle(tmp_path / "review.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


def test_the_digest_of_the_sources_is_of_them_all(tmp_path):
    names = ("a.py", "b/c.html", "b/d.js")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = {facts.digest_of_sources(tmp_path)}
    for name in names:
        (tmp_path / name).write_text("y")
        found.add(facts.digest_of_sources(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "e.py")
    found.add(facts.digest_of_sources(tmp_path))
    assert len(found) == 5 and all(re.fullmatch(r"[0-9a-f]{64}", each) for each in found)


def test_batches_hashes_and_head(study, files):
    said, entries = page_of(files, 8), study.ledger
    assert said.count("<tr>") == 3  # header, start, batch
    assert study.head[:16] in said and str(entries[1]["policy"])[:16] in said
    assert f"<td>{study.users}</td>" in said
    assert study.head in page_of(files, 9) and study.head in page_of(files, 11)
    assert str(entries[0]["config"]) in page_of(files, 9)


def with_entries(files, entries):
    lines = "".join(f"{json.dumps(entry)}\n" for entry in entries)
    return finished(files | {"ledger.jsonl": lines.encode()})


def test_a_long_history_is_cut_and_says_so(study, files):
    entry = study.ledger[-1] | {"config": "x"}
    entries = [dict(entry, number=i, previous=f"{i:064}") for i in range(100)]
    said = page_of(with_entries(files, entries), 8)
    assert "100 entries; the first 20 and the last 20 are shown" in said
    assert said.count("<tr>") == 41


def test_the_policy_is_the_studys(study, files):
    said, names, answer = page_of(files, 7), study.names, study.answer
    cells = [unescape(cell) for cell in re.findall(r"<td>([^<]*)</td>", said)]
    rows = [cells[i : i + 3] for i in range(0, len(cells), 3)]
    assert [row[0] for row in rows] == ["ill <b>", "better", "well"]
    for s, row in enumerate(rows):
        for h, cell in enumerate(row[1:]):
            action = names.actions[answer.policy.actions[h, s]]
            assert cell.startswith(f"({action})" if answer.defer[h, s] else f"{action} +")
    assert f"Worth {study.said(study.value)} per episode" in said
    assert f"{study.said(answer.today)} by the same releases" in said


def test_a_difference_is_said_with_its_error(files):
    policy = json.loads(files["policy.json"])
    row = policy["policy"][0] | {"defer": False, "difference": 1.0, "standard_error": 0.5}
    policy["policy"][0] = row
    changed = finished(files | {"policy.json": json.dumps(policy).encode()})
    assert f"{row['action']} +1.00 ± 0.50" in unescape(page_of(changed, 7))


def test_the_picture_shows_every_square_and_where_the_study_defers(study, files):
    answer, said = study.answer, page_of(files, 7)
    assert said.count("<rect") == answer.defer.size
    assert said.count('fill-opacity="0.25"') == answer.defer.sum() > 0
    assert said.count(" (deferred: the default)</title>") == answer.defer.sum()
    first = 1 + answer.policy.actions[0, 0]
    number = f"({first})" if answer.defer[0, 0] else first
    assert re.search(rf'text-anchor="middle">{re.escape(str(number))}</text>', said)
    assert "</i>2 treat &amp; see</span>" in said


def larger(files, **names):
    """The page of a study with more names, whose policy is the first action everywhere."""
    design = json.loads(files["design.json"])
    design["names"] = {"actions": ["wait"], "states": ["ill"], "steps": ["now"]} | names
    design["start_states"] = [0]
    known = {name: page.Content({"design.json": json.dumps(design).encode()}).names(name)
             for name in design["names"]}  # fmt: skip
    rows = [
        {"step": step, "state": state, "action": known["actions"][0], "defer": True}
        for step in known["steps"] for state in known["states"]
    ]  # fmt: skip
    policy = json.loads(files["policy.json"]) | {"policy": rows}
    changed = {"design.json": design, "policy.json": policy}
    return page_of(finished(files | {n: json.dumps(x).encode() for n, x in changed.items()}), 7)


def test_a_large_problem_is_cut_and_long_names_are_shortened(files):
    said = larger(files, states=[f"a state with a long name {i}" for i in range(2_001)], actions=9)
    assert said.count("<rect") == 60
    assert "a state with a lon…</text>" in said
    assert "The picture shows the first 60 states and 1 steps." in said
    assert "The first 2,000 of 2,001." in said
    keys = re.findall(r"background:(#\w+)", said)
    assert (len(keys), keys[8]) == (9, keys[0])


def test_many_steps_stand_below_each_other(files):
    said = larger(files, states=3, steps=13)
    assert "<th>step</th><th>state</th><th>action</th>" in said
    assert said.count("<tr>") == 1 + 13 * 3
    assert "The first" not in said


def test_the_embedded_certificate_holds(study, files):
    from discreet.privacy.certificates.document import verify

    said = page_of(files, 5)
    embedded = re.search(r'href="data:application/json;base64,([^"]*)"', said)[1]
    text = base64.b64decode(embedded)
    assert text == files["certificate-0.json"]
    data = json.loads(text)
    assert verify(data, of=study.mechanism) <= 1e-6
    assert data["digest"] in said and f"<td>{data['noise']['name']}</td>" in said
    deviation = rounded_noise(study.mechanism.noise_variance(study.users)["rewards"] ** 0.5)
    assert f"rewards</td><td>{deviation} users (standard deviation" in said


def test_every_claim_has_a_command(study, files):
    said = page_of(files, 10)
    for command in (
        "study verify",
        "certify --verify",
        "audit central/",
        "study policy",
        "study bundle",
    ):
        assert f"<code>discreet {command}" in said
    alone = re.findall(r"<td>the bundle and Python</td><td><code>(.*?)</code>", said)
    proof = "python -I verify.py certificate-0.json"
    assert alone == [f"python -I review.py --head {study.head}", proof]
    assert "--epsilon 1.0 --delta" in said


def test_parameters(files):
    said = page_of(files, 4)
    assert "flow-ucb" in said
    assert "epsilon 1, delta 1e-06" in said or "delta 1e-06, epsilon 1" in said
    assert "better" in said


def test_an_audit_that_fails_says_so(study, files):
    audit = facts._audit(
        Examined(None, "too many", 3.0, 400, (), "x", ("a leak",)), study.guarantee
    )
    told = retold(files, audit=audit)
    assert "THE GUARANTEE IS CONTRADICTED." in page_of(told, 6)
    assert "a leak" in page_of(told, 6) and "not computed: too many" in page_of(told, 6)
    assert "proves ε ≥ 3;" in page_of(told, 6)
    assert "DOES NOT AGREE" in page_of(told, 0)
    assert "Nothing contradicts the guarantee." in page_of(files, 6)


def test_several_releases_are_charged_in_words(tmp_path, files):
    study = small(tmp_path / "study.db")
    study.reissue(returning="seen")
    told = members(study, *NO_PROOFS)
    said = page_of(told, 1).replace("\n", " ")
    assert "One release has ε = 1, δ = 0 (JDP)" in said
    assert "all are charged: ε = 2, δ = 0 (JDP) together" in said
    assert "A batch was opened again: 2 releases are charged." in page_of(told, 0)
    assert "charged" not in page_of(files, 1)


def test_batches_of_a_service_are_of_tickets_not_of_people(files):
    entries = [json.loads(line) for line in files["ledger.jsonl"].splitlines()]
    for entry in entries:
        if entry["kind"] == "batch":
            entry["note"] = {"manifest": "0"}
    served, named = page_of(with_entries(files, entries), 0), page_of(files, 0)
    assert served.count("of different tickets") == named.count("of different people") == 2
    assert "A ticket is used once" in served and "A person takes part once" in named
    assert "of different people" not in served and "ticket" not in named


def test_without_a_certificate_nothing_is_called_certified(tmp_path, files):
    assert "<td>certified</td>" in page_of(files, 0)
    study = small(tmp_path / "study.db")
    for proofs, said in (
        ([], "There is no certificate: no batch was counted."),
        ([Proof(7, "No certificate: why.")], "A batch of 7: No certificate: why."),
    ):
        told = members(study, proofs, None)
        assert "not certified: see section 5" in page_of(told, 0)
        assert said in page_of(told, 5)


def test_sizes_of_batches_without_a_certificate_are_counted(study, files):
    start, batch = study.ledger
    data = json.loads(files["certificate-0.json"])
    data["release"]["users"] = batch["users"]
    proven = files | {"certificate-0.json": json.dumps(data).encode()}
    entries = [start, batch, dict(batch, users=7), dict(batch, users=8)]
    assert "2 smaller sizes of batches have no" in page_of(with_entries(proven, entries), 5)
    for other in (finished(proven), with_entries(files, entries)):
        assert "smaller sizes" not in page_of(other)


def test_every_notion_has_its_words(tmp_path):
    trusts = {"JDP": discreet.Central(1), "LDP": discreet.Local(1),
              "SDP": discreet.Shuffle(1, 1e-6), "none": discreet.NoPrivacy()}  # fmt: skip
    assert set(trusts) == set(NOTIONS) == set(page.WORDS)
    pages = set()
    for notion, trust in trusts.items():
        said = members(small(tmp_path / notion, trust), *NO_PROOFS)
        assert page_of(said, 2).count("<tr>") >= 1 + 3
        assert page_of(said, 3).count("<li>") >= 1 + 5
        pages.add(page_of(said, 2))
    assert len(pages) == 4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_bounds_are_rounded_up(epsilon):
    said = in_numbers("JDP", epsilon, 1e-6)
    factor = float(said[0].split("more than ")[1].split(" times")[0])
    right = float(said[1].split("at most ")[1].split("%")[0])
    assert math.exp(epsilon) <= factor <= 1.02 * math.exp(epsilon)
    exact = 100 * (math.exp(epsilon) + 1e-6) / (math.exp(epsilon) + 1)
    assert exact <= right <= exact + 0.1
    odds = float(said[2].split("at most ")[1].split(" to 9")[0])
    assert math.exp(epsilon) + 0.001 <= odds <= 1.02 * math.exp(epsilon) + 0.001
    percent = float(said[2].split(" to 9 (")[2].split("%")[0])
    assert 100 * odds / (odds + 9) - 0.2 <= percent <= 100 * odds / (odds + 9) + 0.1
    assert "if they would conclude it from 1 in 1,000 other records" in said[2]
    risk = float(said[3].split("at most ")[1].split(" in 100")[0])
    assert min(100, math.exp(epsilon) + 1e-4) <= risk <= 1.02 * math.exp(epsilon)
    assert "one in 1,000,000" in said[4]


def test_what_is_beyond_doubles_is_not_said_to_be_less():
    said = in_numbers("JDP", "800", "3e-07")
    assert "more than inf times" in said[0]
    assert "at most 100% of cases" in said[1]
    assert "inf to 9 (100%)" in said[2]
    assert "at most 100 in 100" in said[3]
    assert "This is weak: ε = 800" in said[4]
    assert "one in 3,333,333." in said[5]


def test_a_large_delta_makes_guesses_better():
    said = in_numbers("JDP", 1.0, 0.25)
    assert f"at most {math.ceil(1000 * (math.e + 0.25) / (math.e + 1)) / 10:g}%" in said[1]
    assert "at most 253 to 9" in said[2]
    assert f"at most {math.ceil(10 * (math.e + 25)) / 10:g} in 100" in said[3]
    assert "at most one in 4." in said[4]


def test_a_pure_promise_has_no_chance_of_failure():
    said = in_numbers("LDP", 1.0)
    assert len(said) == 4
    assert said[2].endswith("at most 2.72 to 9 (23.2%) after seeing everything.")
    assert in_numbers("none", "") == ("Whoever sees what is published may learn everything.",)
