"""The reviewer's bundle: a bare Python confirms it, finds every edit, and it tells no names."""

import base64
import dataclasses
import hashlib
import json
import math
import random
import re
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError
from discreet.learners.base import PublicFacts
from discreet.learners.learn import make_batch_learner
from discreet.learners.registry import _SHIPPED, get_learner
from discreet.mdp.shape import Shape
from discreet.privacy.accounting.closed_forms import gaussian_epsilon
from discreet.privacy.certificates import certify, verify
from discreet.privacy.mechanisms.base import Request
from discreet.privacy.mechanisms.registry import everything
from discreet.privacy.trust import TRUST_MODELS
from discreet.study.dossier import page, review
from discreet.study.dossier.bundle import finished, zipped
from discreet.study.dossier.review import CHECKS, Bundle, Refused
from helpers.dossiers import bundled, page_of, retold, small, told
from helpers.studies import everything_in

RNG = np.random.default_rng(0)
TRUSTS = {
    "central": (discreet.Central(1, 1e-6), {}),
    "twice": (discreet.Central(1, participations=2), {"learner": "trial"}),
    "local": (discreet.Local(2), {}),
    "shuffle": (discreet.Shuffle(2, 1e-6), {"episodes": 2_000}),
    "none": (discreet.NoPrivacy(), {}),
}


@pytest.fixture(scope="module", params=TRUSTS)
def made(request, tmp_path_factory):
    """A study under each trust, and the files of its bundle."""
    trust, changes = TRUSTS[request.param]
    study = small(tmp_path_factory.mktemp("bundle") / "study.db", trust, **changes)
    if request.param == "local":
        study.reissue(returning="seen")  # the same people once more: both releases are charged
    told(study, 0)
    told(study, 1, again=request.param == "twice")
    study.close()
    return study, bundled(study)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Of a central study, the only one that is edited below."""
    study = small(tmp_path_factory.mktemp("bundle") / "study.db")
    told(study, 0)
    told(study, 1)
    return bundled(study)


def test_the_page_counts_participations_and_protects_all_of_a_persons(made):
    study, files = made
    text = " ".join(page_of(files).split())
    assert "nobody counted twice" not in text and "participant's whole episode" not in text
    assert f"{study.users:,} of {study.episodes:,}, in {study.batches:,} batches" in text
    if study.guarantee.notion != "none":
        assert "all that one participant did in the study, the unit below" in text
        assert f"unit: {study.guarantee.unit}".replace("'", "&#x27;") in text


def unpacked(files, folder):
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def found(files, folder, *checks):
    """The names of the checks (all of them) that refuse these files; what they say."""
    bundle = Bundle(unpacked(files, folder))
    refused = {}
    for name in checks or dict(CHECKS):
        try:
            dict(CHECKS)[name](bundle)
        except Exception as error:
            refused[name] = str(error)
    return refused


def bare(folder, *arguments):
    """Run the review as somebody would who has Python and nothing else."""
    command = [sys.executable, "-I", "-S", "review.py", *arguments]
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, timeout=120)


def test_a_bare_python_confirms_it(made, tmp_path):
    study, files = made
    folder = unpacked(files, tmp_path / "review")
    done = bare(folder, "--head", study.head)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nok    ") == len(CHECKS)
    assert "All that was compared agrees." in done.stdout
    assert f"{study.users:,} users, {study.batches} batches" in done.stdout
    assert {p.name for p in folder.iterdir()} == set(files)  # it leaves nothing behind
    other = bare(folder, "--head", "0" * 64)
    assert other.returncode == 1
    assert f"the head is {study.head}, not 000" in other.stdout


def test_the_program_of_the_certificate_stands_where_the_page_says(made, tmp_path):
    _, files = made
    folder = unpacked(files, tmp_path / "review")
    for command in re.findall(r"<code>python -I (verify\.py [^<]*)</code>", page_of(files)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", *command.split()], cwd=folder, capture_output=True
        )
        assert done.returncode == 0
    assert ("certificate-0.json" in files) == ("python -I verify.py" in page_of(files))


def test_it_tells_no_names_and_no_secrets(made):
    study, files = made
    everything = b"".join(files.values())
    secrets = [study._key, study._key.hex().encode(), base64.b64encode(study._key)]
    names = [f"user-{i}".encode() for i in range(study.users)]
    tokens = [] if study.finished else [study.token.encode()]
    for secret in (*secrets, *names, *tokens):
        assert secret not in everything
    plain = [
        hashlib.blake2b(b"user-0", digest_size=16).digest(),
        hashlib.sha256(b"user-0").digest(),
    ]
    for digest in plain:
        assert digest not in everything
        assert digest.hex().encode() not in everything
    known = {"README.txt", "SHA256SUMS", "design.json", "dossier.html", "facts.json",
             "ledger.jsonl", "page.py", "participants.bin", "policy.json", "review.py",
             "verify.py"}  # fmt: skip
    assert {name for name in files if not name.startswith("certificate-")} == known


def test_equal_material_gives_equal_bytes(files):
    assert zipped(files) == zipped(dict(reversed(files.items())))


def test_the_command_writes_it_and_says_its_digest(tmp_path):
    study = small(tmp_path / "study.db", discreet.NoPrivacy())
    before, steps = everything_in(tmp_path), []
    digest = study.bundle(tmp_path / "review.zip", steps.append)
    content = (tmp_path / "review.zip").read_bytes()
    assert digest == hashlib.sha256(content).hexdigest()
    with zipfile.ZipFile(tmp_path / "review.zip") as archive:
        assert archive.testzip() is None
        assert "review.py" in archive.namelist()
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    (tmp_path / "review.zip").unlink()
    assert everything_in(tmp_path) == before
    assert steps[0] == "the file"
    with pytest.raises(StudyError, match=r"ends in \.zip"):
        study.bundle(tmp_path / "review.tar", lambda _: pytest.fail("it began"))


def test_a_truncated_file_is_none(files, tmp_path):
    whole = zipped(files)
    for kept in (0, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "review.zip").write_bytes(whole[:kept])
        with pytest.raises(zipfile.BadZipFile):
            zipfile.ZipFile(tmp_path / "review.zip").testzip()


def test_every_file_that_is_changed_lost_or_added_is_found(files, tmp_path):
    for number, (name, content) in enumerate(files.items()):
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for what, other in (
            ("flipped", files | {name: flipped}),
            ("cut", files | {name: content[:-1]}),
            ("lost", {n: c for n, c in files.items() if n != name}),
        ):
            refused = found(other, tmp_path / f"{number} {what}", "files")
            assert "files" in refused, (what, name)
    assert found(files | {"json.py": b"raise SystemExit(0)"}, tmp_path / "more") == {
        "files": "json.py is not of this bundle: take it away"
    }


def test_a_file_beside_it_takes_no_modules_place(files, tmp_path):
    folder = unpacked(files | {"json.py": b"raise SystemExit(0)"}, tmp_path / "review")
    done = subprocess.run([sys.executable, "review.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "json.py is not of this bundle" in done.stdout


def edit(name, old, new):
    """Replace a part of one file, in every place."""

    def edited(files):
        text = files[name].decode()
        assert re.search(old, text), old
        return files | {name: re.sub(old, new, text).encode()}

    return edited


def people(change):
    def edited(files):
        return files | {"participants.bin": change(files["participants.bin"])}

    return edited


def certificate(**changes):
    """Another certificate in its file and in the page, with its digest in both."""

    def edited(files):
        data = json.loads(files["certificate-0.json"])
        for field, value in changes.items():
            part, _, inner = field.partition("__")
            if inner:
                data[part][inner] = value
            else:
                data[part] = value
        return forged(files, data)

    return edited


def forged(files, data):
    """The same bundle with this certificate."""
    text = json.dumps(data | {"digest": verify.digest(data)}, indent=1)
    return files | {"certificate-0.json": f"{text}\n".encode()}


EDITS = {
    "a user less in the ledger": (
        "participants", edit("ledger.jsonl", r'"users":14\b', '"users":13')),
    "an entry less": ("policy", edit("ledger.jsonl", r"\n.*\n$", "\n")),
    "another policy asked": ("ledger", edit("ledger.jsonl", r'"policy":"..', '"policy":"00')),
    "another first version": (
        "ledger", edit("ledger.jsonl", r'(us":"","software":{"discreet":")', r"\g<1>9")),
    "another kind": ("ledger", edit("ledger.jsonl", r'"kind":"batch"', '"kind":"close"')),
    "a participant less": ("participants", people(lambda data: data[:-16])),
    "a participant more": ("participants", people(lambda data: data + bytes(16))),
    "another participant": ("participants", people(lambda data: bytes(16) + data[16:])),
    "more users designed": ("design", edit("design.json", r'"episodes":300', '"episodes":900')),
    "a smaller epsilon designed": (
        "guarantee", edit("design.json", r'"epsilon":1\b', '"epsilon":0.5')),
    "another trust designed": ("guarantee", edit("design.json", r'"Central"', '"Local"')),
    "more participations": ("guarantee", edit("design.json", r'(participations":)1', r"\g<1>2")),
    "a rehearsal as a study": ("guarantee", edit("design.json", r'"simulation"', '"secure"')),
    "a rehearsal without its name": ("guarantee", edit("ledger.jsonl", r"SIMULATED[^:]*: ", "")),
    "less noise": ("certificates", certificate(noise__scale="1")),
    "a weaker proof": ("certificates", certificate(epsilon="2")),
    "a ledger that promises more": (
        "certificates", edit("ledger.jsonl", r"\(1, 0\)", "(0.5, 0)")),
    "a proof of other states": ("certificates", certificate(release__states=2)),
    "a proof that was edited": (
        "certificates", edit("certificate-0.json", r'"bound": "0"', '"bound": "0/1"')),
    "another action": ("policy", edit("policy.json", r'n": "wait"', 'n": "treat & see"')),
    "a policy of another head": ("policy", edit("policy.json", r'"head": "..', '"head": "00')),
    "a policy that promises more": ("policy", edit("policy.json", r"\(1, 0\)", "(0.1, 0)")),
    "a policy that is worth more": ("policy", edit("policy.json", r'"value": 0', '"value": 7')),
    "a policy of other states": ("policy", edit("policy.json", r'"better"', '"well"')),
}  # fmt: skip


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_found_by_who_compares_the_files(what, files, tmp_path):
    """Even if page and sums were made anew: the files confirm each other."""
    check, change = EDITS[what]
    refused = found(finished(change(files)), tmp_path / "review")
    assert check in refused and not {"files", "page"} & set(refused)


def assert_found(bundle, edited):
    whole = bundle.files
    bundle.files = whole | {"dossier.html": edited.encode()}
    with pytest.raises(Refused, match=r"dossier\.html is"):
        review.check_page(bundle)
    bundle.files = whole


def test_any_changed_text_of_the_page_is_found(files, tmp_path):
    """And of facts.json alone: the page is made again, and every byte of it compared."""
    bundle, rng, text = (
        Bundle(unpacked(files, tmp_path / "review")),
        random.Random(7),
        page_of(files),
    )
    for _ in range(200):
        here, length = rng.randrange(len(text)), rng.choice((0, 0, 1, 1, 3, 50))
        new = "".join(rng.choices("0 9<e", k=rng.choice((0, 1, 4))))
        edited = text[:here] + new + text[here + length :]
        if edited != text:
            assert_found(bundle, edited)
    for edited in (text[: text.rindex("</body>")], f"{text}<p>ε = 0</p>\n", f"{text}\n"):
        assert_found(bundle, edited)
    assert review.check_page(bundle).startswith(f"{len(files['dossier.html']):,} bytes")
    facts = files["facts.json"].replace(b'"notes": []', b'"notes": ["fine"]')
    assert "page" in found(files | {"facts.json": facts}, tmp_path / "facts", "page")


def test_facts_are_the_operators_word_and_nothing_else_is(files, tmp_path):
    """What they say is printed as theirs; no other fact of the page follows from them."""
    other = retold(files, notes=["ε = 0"], assumptions=[], ending="ended", mechanism="x",
                   statistics="y", settings={"learner": "z", "mixing": True})  # fmt: skip
    assert found(other, tmp_path / "review") == {}
    for section in (2, 3, 5, 6, 8, 9, 10, 11):
        assert page_of(files, section) == page_of(other, section)
    assert "ε = 0</p>" in page_of(other, 7) and "ended" in page_of(other, 0)
    assert "mixing False" in page_of(other, 4)  # the design's own settings stay


def settled_by(trust, learner="flow-ucb", stationary=False, **settings):
    """What `review` derives from a design, and what the mechanism of that study says of itself."""
    problem = PublicFacts(Shape(2, 2, 2), 5_000, np.ones(2, np.bool_), stationary)
    made = make_batch_learner(get_learner(learner), problem, trust, RNG, settings)
    said = made.mechanism.release_facts(5_000)
    bundle = Bundle(Path())
    bundle.said = page.Content({})
    bundle.said.entries = [{"kind": "batch", "users": 5_000}]
    bundle.said.design = {
        "learner": learner,
        "trust": {"model": type(trust).__name__, **dataclasses.asdict(trust)},
        "names": {"states": 2, "actions": 2, "steps": 2},
        "stationary": stationary,
        "settings": settings,
    }
    return review.settled(bundle, said), said


@pytest.mark.parametrize("learner", [n for n in _SHIPPED if get_learner(n).schedule == "batch"])
@pytest.mark.parametrize("name", [
    f"{m.trust} {m.name}" for m in everything() if m.schedule == "batch" and m.trust != "none"
])  # fmt: skip
def test_the_review_settles_what_every_learner_and_mechanism_releases(learner, name):
    """A field, a learner or a mechanism that is new has to be settled in `review`, too."""
    model, _, mechanism = name.partition(" ")
    trust = TRUST_MODELS[model](4.0, 1e-2, mechanism=mechanism)  # quickly calibrated
    cases = [{}, {"stationary": True}]
    cases += [{"structure": "paper"}] if learner in ("pe", "sdp-pe") else []
    for settings in cases:
        due, said = settled_by(trust, learner, **settings)
        assert due.keys() == said.keys()
        assert [field for field in said if said[field] not in due[field]] == []
        assert all(len(due[field]) == 1 for field in due if field != "users")


def test_the_review_knows_what_auto_takes():
    for model in ("central", "local", "shuffle"):
        kind = TRUST_MODELS[model]
        trusts = [kind(1.0, delta, participations=m) for delta in (0.0, 1e-6) for m in (1, 2)]
        sizes = [Request(Shape(4, 2, horizon)) for horizon in (1, 6)]
        found = {t.rule(one, "batch").mechanism for t in trusts for one in sizes}
        assert found == set(review.AUTO[kind.__name__])


def test_the_certificate_of_a_smaller_release_is_found(tmp_path):
    """Of rewards alone, 0.816 sigma: all else agrees, and what is released has epsilon 1.24."""
    trust = discreet.Central(1, 1e-6, mechanism="gaussian")
    study = small(tmp_path / "study.db", trust)
    told(study, 0)
    study.close()
    files = bundled(study)
    usual, rewards = study.mechanism, trust.calibrate(study.problem.shape, statistics=("rewards",))
    data, wrong = json.loads(files["certificate-0.json"]), certify(rewards).to_dict()
    wrong["release"]["last_transitions"] = False
    delivered = gaussian_epsilon(float(Fraction(wrong["noise"]["sigma"])), math.sqrt(6), 1e-6)
    assert usual.guarantee.epsilon == 1 and delivered > 1.2
    assert wrong.keys() == data.keys() and verify.check(wrong | {"digest": verify.digest(wrong)})
    refused = found(finished(forged(files, wrong)), tmp_path / "review")
    assert refused == {
        "certificates": 'certificate-0.json is about statistics ["rewards"], not '
        '["transitions", "rewards"]'
    }


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_certificate_of_other_noise_is_found(mechanism, tmp_path):
    """Of more than was drawn, it is a proof as well: of another epsilon, or of nothing that ran."""
    study = small(tmp_path / "study.db", discreet.Central(1, 1e-6, mechanism=mechanism))
    told(study, 0)
    files = bundled(study)
    part = {"laplace": "scale", "gaussian": "sigma"}[mechanism]
    facts = [["noise on a counter of transitions", "1,000,000 users"]]
    for changes, noise, said in (
        ({"epsilon": "1/1000"}, facts, "is for epsilon 1/1000, and this design's is 1"),
        ({"delta": "1/10000000", "bound": "1/10000000"}, facts, "is for delta 1/10000000, and"),
        ({}, json.loads(files["facts.json"])["noise"], "facts.json says"),
    ):
        if mechanism == "laplace" and "delta" in changes:
            continue  # none is guaranteed
        edited = certificate(**{f"noise__{part}": "1000000", **changes})(files)
        refused = found(retold(edited, noise=noise), tmp_path / said.replace("/", " "))
        assert refused.keys() == {"certificates"} and said in refused["certificates"]


FIELDS = {
    "trust": "local", "schedule": "continual", "mechanism": "bounded", "participations": 2,
    "states": 2, "actions": 3, "horizon": 1, "statistics": ["transitions"],
    "last_transitions": True, "users": 24, "separation": 2, "honest": "1/2", "stationary": True,
    "episodes": 300, "note": "of no study",
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_a_certificate_is_compared(field, files, tmp_path):
    """Even if `verify.py` accepted it: each is what the design says, or an error."""
    data = json.loads(files["certificate-0.json"])
    data["release"][field] = FIELDS[field]
    bundle = Bundle(unpacked(forged(files, data), tmp_path / "review"))
    with pytest.raises(Refused, match=f"{field}"):
        review._check_release(bundle, "certificate-0.json", data)


def test_a_part_that_is_not_settled_is_an_error(files, tmp_path):
    data = json.loads(files["certificate-0.json"])
    assert set(data) == {"release", "epsilon", "delta", *review.PROVEN}
    bundle = Bundle(unpacked(files, tmp_path / "review"))
    with pytest.raises(Refused, match="says 'seed', which nothing of this study settles"):
        review._check_release(bundle, "certificate-0.json", data | {"seed": 7})


def test_it_says_what_it_trusts_and_what_it_leaves_out(files, tmp_path):
    """A program that accepts everything is found by its SHA-256, in the text that came with it."""
    said = bare(unpacked(files, tmp_path / "review")).stdout
    for name, module in (("review.py", review), ("page.py", page), ("verify.py", verify)):
        digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
        assert f"{digest}  {name}" in said
        assert f"{digest}  {name}" in files["README.txt"].decode()
    assert said.startswith("note") and "Compare these SHA-256" in said  # before any of them runs
    for text in review.UNCHECKED:
        assert text in said


def test_a_batch_of_too_little_noise_is_said_wherever_something_is_guaranteed(tmp_path):
    study = small(tmp_path / "study.db")
    told(study, 0)
    assert not any("less noise" in text for text in study.guarantee.assumptions)
    told(study, 1, note={"accepted": "by a person, with too little noise"})
    told(study, 2)
    said = "atch 1 was counted with less noise than was promised"
    for each in (study, discreet.open_study(study.path)):
        assert [said in text for text in each.guarantee.assumptions].count(True) == 1
        assert said in str(each)
    files = retold(bundled(study), assumptions=[], notes=[])  # whatever the operator says
    for section in (0, 1):
        assert page_of(files, section).count(f'<p class="fails">B{said}') == 1
    bundle = Bundle(unpacked(files, tmp_path / "review"))
    assert f"BUT: B{said}" in review.check_guarantee(bundle)


@pytest.mark.parametrize("name, content, said", [
    ("facts.json", b"{}", "a file does not have the form that page.py reads"),
    ("facts.json", b"{", "facts.json does not have the form that page.py reads"),
    ("policy.json", b"[]", "a file does not have the form that page.py reads"),
])  # fmt: skip
def test_a_file_of_another_form_is_a_sentence(files, tmp_path, name, content, said):
    done = bare(unpacked(files | {name: content}, tmp_path / "review"))
    assert done.returncode == 1 and not done.stderr
    assert f"FAIL  page: {said}; one was edited or is missing\n" in done.stdout
    assert "Error" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("program", [["review.py"], ["verify.py", "certificate-0.json"]])
def test_who_cannot_answer_confirms_nothing(files, tmp_path, program):
    folder = unpacked(files, tmp_path / "review")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-I", *program], cwd=folder, stdout=full,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Nothing is ") and done.stderr.count("\n") == 1


def test_nothing_else_is_refused(files, tmp_path):
    assert finished(files) == files
    assert found(files, tmp_path / "review") == {}


@pytest.mark.parametrize("entry, said", [
    (1, "somebody is twice in entry 1"), (2, "somebody was counted 2 times, 1 are guaranteed for"),
])  # fmt: skip
def test_who_comes_too_often_is_found(files, tmp_path, entry, said):
    """In a ledger that quotes a participant twice, as an operator who cheats could write it."""
    entries = [json.loads(line) for line in files["ledger.jsonl"].splitlines()]
    first = 16 * entries[1]["users"]
    data = files["participants.bin"]
    place = first if entry == 2 else 16
    data = data[:place] + data[:16] + data[place + 16 :]
    for quoting, part in ((entries[1], data[:first]), (entries[2], data[first:])):
        quoting["names"] = hashlib.sha256(part).hexdigest()
    ledger = "".join(f"{json.dumps(each)}\n" for each in entries).encode()
    edited = files | {"participants.bin": data, "ledger.jsonl": ledger}
    assert found(edited, tmp_path / "review", "participants") == {"participants": said}


def test_refusals_are_sentences(files, tmp_path):
    folder = unpacked(files, tmp_path / "review")
    (folder / "design.json").write_text("{}")
    with pytest.raises(Refused, match="the ledger began with another design"):
        dict(CHECKS)["design"](Bundle(folder))
