"""`discreet study`: a whole life on the command line, its files, and what is refused."""

import csv
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from discreet.cli.study import DesignOptions, Rehearsal
from discreet.device import load
from discreet.errors import InvalidInputError
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.guarantee import REHEARSED
from discreet.study.design import read_design
from discreet.study.dossier.bundle import members
from discreet.study.files import WHOLE
from helpers.bad_commands import CASES, prepared, refused
from helpers.dossiers import page_of
from helpers.studies import RIVER, everything_in, sql
from helpers.study_commands import DESIGN, resumed, write_table


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder with a design, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "design.toml").write_text(DESIGN)
    return tmp_path


@pytest.fixture
def rehearsed(place, discreet):
    """The same, with a rehearsal in it."""
    code, _, _ = discreet(
        "study", "start", "study.db", "--design", "design.toml", "--rehearse", "--seed", "1"
    )
    assert code == 0
    return place


@pytest.fixture
def run(discreet):
    """A study command that must work; its JSON."""

    def call(*arguments):
        code, out, err = discreet("study", *map(str, arguments), "--json")
        assert (code, err) == (0, ""), err
        return json.loads(out)

    return call


@pytest.fixture
def options(place):
    """Options beside the design file of the folder."""
    return lambda **typed: DesignOptions(design=place / "design.toml", **typed)


def test_a_file_alone_is_taken_as_it_is(options, place):
    from discreet.study.design import read_design

    assert options().read() == read_design(place / "design.toml")


def test_what_is_typed_holds_and_the_rest_stays(options):
    written, typed = options().read(), options(epsilon=0.25, start="a, b,").read()
    assert typed.trust == {**written.trust, "epsilon": 0.25}
    assert list(typed.start_states) == ["a", "b"]
    assert typed.states == written.states


def test_another_trust_model_keeps_epsilon_and_delta_alone():
    written = {"model": "shuffle", "epsilon": 2.0, "delta": 1e-6, "mechanism": "bits", "honest": 1}
    other = DesignOptions(trust="central").over(written)
    assert other == {"model": "central", "epsilon": 2.0, "delta": 1e-6}
    assert DesignOptions(trust="none").over(written) == {"model": "none"}
    assert DesignOptions(trust="shuffle", honest=0.5).over(written) == {**written, "honest": 0.5}


@pytest.mark.parametrize(
    ("text", "names"),
    [("4", 4), ("ill", ["ill"]), ("ill, well", ["ill", "well"]), (" ill ", ["ill"])],
)
def test_a_number_or_names(text, names):
    assert DesignOptions(states=text, actions="2", steps="3").read().states == names


def test_settings_of_file_and_command_are_joined(options):
    written = options().read()
    found = options().read({"settings": {"confidence": 0.5}})
    assert found.settings == {**written.settings, "confidence": 0.5}


def test_nobody_is_protected_by_a_seed():
    assert Rehearsal().arguments() == {"sampler": "secure", "seed": None}
    assert Rehearsal(rehearse=True, seed=3).arguments() == {"sampler": "simulation", "seed": 3}
    with pytest.raises(InvalidInputError, match="--seed 0; leave it out, or give --rehearse"):
        Rehearsal(seed=0).arguments()


SIZES = ("--states", "3", "--actions", "a,b", "--steps", "2", "--episodes", "1e3")


def test_it_prints_the_guarantee_and_what_it_can_see(rehearsed, discreet):
    code, out, _ = discreet(
        "study", "start", "b.db", "--design", "design.toml", "--rehearse", "--seed", "2"
    )
    assert code == 0
    assert f"{REHEARSED}: (1, 1e-06)-JDP" in out
    assert "400 users are too few to tell two actions" in " ".join(out.split())
    assert "who took part, and how many in each batch, is public" in out
    assert "discreet study ask b.db" in out


def test_a_typed_limit_wins(place, run):
    trial = ("--learner", "trial", "--batches", "4", "--design", "limited.toml", "--rehearse")
    design = DESIGN.replace("mixing = false", "")
    (place / "limited.toml").write_text(f"batches = 3\n{design}")
    made = run("start", "a.db", *trial)
    assert made["settings"]["stages"] == [200, 200] and made["settings"]["batches"] == 4


def test_what_the_counts_contradict_is_said(rehearsed, discreet, run, monkeypatch):
    note = "stationary=True was declared, and the counts contradict it"
    assert run("show", "study.db")["notes"] == run("policy", "study.db")["notes"] == []
    monkeypatch.setattr("discreet.study.study.Study.notes", (note,))
    assert run("show", "study.db")["notes"] == run("policy", "study.db")["notes"] == [note]
    for command in ("show", "policy", "close"):
        code, out, err = discreet("study", command, "study.db")
        assert code == 0 and note in " ".join((out + err).split())


def test_a_secure_study_says_nothing_of_a_rehearsal(place, run):
    made = run("start", "study.db", "--design", "design.toml")
    assert not made["simulated"]
    assert made["guarantee"] == "(1, 1e-06)-JDP, one user's whole episode, replace-one"
    study = library.open_study("study.db")
    assert made["head"] == study.head
    assert study.names.steps == ("1", "2", "3", "4")
    assert study.config["table"] == {
        "columns": {"user": "patient", "step": "visit"},
        "reward_range": [0, 10],
    }


def test_options_hold_instead_of_the_file(place, run):
    made = run(
        "start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--honest", "0.9",
        "--epsilon", "2", "--episodes", "500", "--start", "ill,well", "--set", "confidence=0.5",
        "--batches", "4", "--rehearse",
    )  # fmt: skip
    study = library.open_study("study.db")
    assert made["guarantee"].startswith(f"{REHEARSED}: (2, 1e-06)-SDP")
    assert study.config["trust"]["honest"] == 0.9
    assert study.config["start_states"] == [0, 2]
    assert study.config["settings"] == {"mixing": False, "confidence": 0.5, "batches": 4}
    assert study.episodes == 500


def test_a_study_needs_no_file(place, run):
    made = run("start", "s.db", *SIZES, "--trust", "local", "--epsilon", "1", "--rehearse")
    assert made["episodes"] == 1000
    assert library.open_study("s.db").names.actions == ("a", "b")
    made = run("start", "n.db", *SIZES, "--trust", "none", "--rehearse", "--stationary")
    assert made["guarantee"] == "no privacy"
    assert made["epsilon"] is None


def test_another_trust_model_has_other_options(place, run):
    text = (place / "design.toml").read_text().replace('"central"', '"shuffle"\nhonest = 0.9')
    (place / "design.toml").write_text(text)
    run("start", "s.db", "--design", "design.toml", "--trust", "none", "--rehearse")
    assert library.open_study("s.db").guarantee.notion == "none"


def test_what_is_missing_is_named_and_nothing_is_begun(place, discreet):
    cases = {
        (): "Expected how many users will take part",
        ("--episodes", "100"): "Expected the states of the problem",
        ("--episodes", "100", *SIZES[:6]): "Expected a trust model by name",
        ("--episodes", "100", *SIZES[:6], "--trust", "central"): "Expected an epsilon",
    }
    for options, said in cases.items():
        code, out, err = discreet("study", "start", "s.db", *options)
        assert (code, out) == (2, "")
        assert said in err
    assert [p.name for p in place.iterdir()] == ["design.toml"]


def test_a_large_delta_is_remarked_on(place, discreet):
    options = ("--design", "design.toml", "--delta", "0.5", "--rehearse")
    code, _, err = discreet("study", "start", "study.db", *options)
    assert code == 0
    assert "delta = 0.5 lets the guarantee fail" in err


def test_the_batch_request_is_the_studys(rehearsed, run):
    asked, study = run("ask", "study.db"), resumed(rehearsed)
    assert (asked["users"], asked["token"]) == (study.batch_size, study.token)
    assert len(asked["policy"]) == 12
    first = asked["policy"][0]
    assert (first["step"], first["state"]) == ("1", "ill")
    assert first["action"] == study.names.actions[study.ask().actions[0, 0]]
    assert asked["guarantee"].startswith(REHEARSED)
    assert asked["encoder"] is None
    assert run("ask", "study.db") == asked


def test_it_is_written_with_its_guarantee(rehearsed, discreet):
    code, out, _ = discreet("study", "ask", "study.db", "--policy", "week.csv")
    assert code == 0
    assert REHEARSED in out
    with (rehearsed / "week.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert all(REHEARSED in row["guarantee"] for row in rows)
    discreet("study", "ask", "study.db", "--policy", "week.json")
    saved = json.loads((rehearsed / "week.json").read_text())
    assert saved["simulated"]
    assert saved["token"] == resumed(rehearsed).token
    assert len(saved["policy"]) == 12


def test_devices_get_their_description(place, run):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    asked = run("ask", "study.db", "--encoder", "encoder.json")
    described = json.loads((place / "encoder.json").read_text())
    assert described == asked["encoder"]
    assert load(described).batch == load(resumed(place).encoder().to_dict()).batch


def test_a_central_study_has_no_encoder_and_nothing_is_written(rehearsed, discreet):
    code, _, err = discreet(
        "study", "ask", "study.db", "--policy", "p.csv", "--encoder", "encoder.json"
    )
    assert code == 2
    assert "need no encoder" in err
    assert sorted(p.name for p in rehearsed.iterdir()) == ["design.toml", "study.db"]


def test_a_table_for_people(rehearsed, discreet):
    code, out, _ = discreet("study", "ask", "study.db")
    assert code == 0
    assert "better" in out
    assert "at each step, take the action of the state" in out
    assert REHEARSED in out


def write_reports(place, study, seed=0):
    """One file per device, as bytes."""
    week = sample_trajectories(RIVER, study.ask(), study.batch_size, np.random.default_rng(seed))
    phone, folder = load(study.encoder().to_dict()), place / "reports"
    folder.mkdir(exist_ok=True)
    for i in range(len(week)):
        episode = {
            name: getattr(week, name)[i].tolist() for name in ("states", "actions", "rewards")
        }
        (folder / f"{i:05}").write_bytes(phone.to_bytes(phone.encode(episode)))
    names = [f"user {study.users + i}" for i in range(len(week))]
    (place / "users.txt").write_text("\n".join(names) + "\n")


def test_a_table_is_counted_once(rehearsed, run, discreet):
    study = resumed(rehearsed)
    week = write_table(rehearsed / "week.csv", study)
    told = run("tell", "study.db", "week.csv")
    assert told["counted"] == told["users"] == len(week)
    assert told["guarantee"].startswith(REHEARSED)
    assert resumed(rehearsed).head == told["head"] != study.head
    before = everything_in(rehearsed)
    code, out, err = discreet("study", "tell", "study.db", "week.csv")
    assert (code, out) == (2, "")
    assert "nothing was counted" in err
    assert everything_in(rehearsed) == before


def test_it_counts_what_the_library_counts(rehearsed, run, tmp_path):
    import shutil

    import discreet as library

    study = resumed(rehearsed)
    shutil.copy(study.path, rehearsed / "twin.db")
    week = write_table(rehearsed / "week.csv", study)
    run("tell", "study.db", "week.csv")
    twin = library.open_study(rehearsed / "twin.db")
    twin.tell(week, users=[f"patient {i}" for i in range(len(week))])
    assert twin.head == resumed(rehearsed).head


def test_fewer_users_may_come_and_the_table_says_so(rehearsed, discreet):
    study = resumed(rehearsed)
    write_table(rehearsed / "week.csv", study, users=5)
    code, out, _ = discreet("study", "tell", "study.db", "week.csv", "--show-dropped-out")
    assert code == 0
    assert "5 users" in out
    assert REHEARSED in out
    assert "left the policy" not in out
    assert resumed(rehearsed).users == 5


def test_who_left_the_policy_is_for_the_eyes_of_the_operator(rehearsed, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed), users=5)
    _, _, err = discreet("study", "tell", "study.db", "week.csv", "--show-dropped-out")
    assert "0 users left the policy (raw data: do not write it down)." in err


def test_parquet(rehearsed, run):
    import pyarrow.csv
    import pyarrow.parquet

    write_table(rehearsed / "week.csv", resumed(rehearsed), users=4)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv("week.csv"), "week.parquet")
    assert run("tell", "study.db", "week.parquet")["counted"] == 4


def test_reports_of_devices(place, run):
    for trust in ("shuffle", "local"):
        (place / "study.db").unlink(missing_ok=True)
        run("start", "study.db", "--design", "design.toml", "--trust", trust, "--rehearse")
        study = resumed(place)
        write_reports(place, study)
        options = ("--users", "users.txt", "--token", study.token)
        told = run("tell", "study.db", "reports", *options)
        assert told["counted"] == study.batch_size
        assert bool(told["note"]) == (trust == "shuffle")
        for file in (place / "reports").iterdir():
            file.unlink()


def test_one_file_of_reports_and_an_array(place, run):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    study = resumed(place)
    write_reports(place, study)
    rows = study.read_reports("reports")
    joined = b"".join(p.read_bytes() for p in sorted((place / "reports").iterdir()))
    (place / "all.bin").write_bytes(joined)
    assert np.array_equal(study.read_reports("all.bin"), rows)
    np.save("mixed.npy", np.random.default_rng(0).permutation(rows))
    told = run("tell", "study.db", "mixed.npy", "--users", "users.txt", "--token", study.token)
    assert told["users"] == study.batch_size
    assert (told["note"], resumed(place).ledger[-1].get("note")) == ({}, None)


def test_whoever_counts_whole_reports_is_the_shuffler(place, run, discreet):
    """On the screen, in the ledger, and in the dossier where a reviewer asks who is trusted."""
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    study = resumed(place)
    write_reports(place, study)
    options = ("--users", "users.txt", "--token", study.token)
    code, out, _ = discreet("study", "tell", "study.db", "reports", *options)
    assert code == 0
    assert "was the shuffler" in " ".join(out.split())
    study = resumed(place)
    assert study.ledger[-1]["note"] == {"reports": WHOLE}
    assert f"1 of 1 batches: {WHOLE}." in page_of(members(study, [], None), 2)


def test_reports_need_names_and_a_token(place, run, discreet):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    write_reports(place, resumed(place))
    before = everything_in(place)
    cases = {
        (): "name the users with --users",
        ("--users", "users.txt"): "pass the token",
        ("--users", "users.txt", "--token", "0"): "another batch or under another policy",
        ("--users", "none.txt", "--token", "0"): "No such file",
    }
    for options, said in cases.items():
        code, out, err = discreet("study", "tell", "study.db", "reports", *options)
        assert (code, out) == (2, "")
        assert said in err
    assert everything_in(place) == before


def test_a_central_table_names_its_users(rehearsed, discreet):
    (rehearsed / "users.txt").write_text("ann\n")
    write_table(rehearsed / "week.csv", resumed(rehearsed), users=1)
    code, _, err = discreet("study", "tell", "study.db", "week.csv", "--users", "users.txt")
    assert code == 2
    assert "leave out --users" in err
    assert resumed(rehearsed).users == 0


def test_a_table_is_no_report(place, run, discreet):
    run("start", "study.db", "--design", "design.toml", "--trust", "local", "--rehearse")
    before = everything_in(place)
    code, out, err = discreet("study", "tell", "study.db", "week.csv")
    assert (code, out) == (2, "")
    assert "Expected reports, got the table 'week.csv': nobody sees raw episodes under LDP" in err
    assert everything_in(place) == before


def test_facts_and_every_entry(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed), users=6)
    run("tell", "study.db", "week.csv")
    shown, study = run("show", "study.db"), resumed(rehearsed)
    assert [entry["kind"] for entry in shown["ledger"]] == ["start", "batch"]
    assert shown["ledger"] == study.ledger
    assert (shown["users"], shown["batches"], shown["finished"]) == (6, 1, False)
    assert shown["value"]["value"] == study.value.value
    code, out, _ = discreet("study", "show", "study.db")
    assert code == 0
    assert out.count(REHEARSED) == 2  # in both tables
    assert study.head in out


def test_a_long_ledger_is_cut_and_says_so(rehearsed, run, discreet):
    study = resumed(rehearsed)
    for _ in range(45):
        study.reissue()
    code, out, _ = discreet("study", "show", "study.db")
    assert code == 0
    assert "last 40 of 46" in out
    assert len(run("show", "study.db")["ledger"]) == 46


def test_reading_changes_nothing(rehearsed, run):
    before = (rehearsed / "study.db").read_bytes()
    for command in ("show", "policy", "verify", "ask"):
        run(command, "study.db")
    assert (rehearsed / "study.db").read_bytes() == before


def test_the_policy_is_the_studys(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed))
    run("tell", "study.db", "week.csv")
    study = resumed(rehearsed)
    found = run("policy", "study.db", "--output", "policy.json")
    chosen = [study.names.actions[a] for a in study.policy.actions.ravel()]
    assert [row["action"] for row in found["policy"]] == chosen
    assert json.loads((rehearsed / "policy.json").read_text())["policy"] == found["policy"]
    assert found["simulated"]
    code, out, _ = discreet("study", "policy", "study.db")
    assert code == 0
    assert REHEARSED in out
    assert "better" in out


def test_where_it_was_written(rehearsed, discreet):
    code, out, _ = discreet("study", "policy", "study.db", "--output", "policy.csv")
    assert code == 0
    assert out.startswith("policy.csv: worth") and "; today " in out
    assert REHEARSED in out
    code, _, err = discreet("study", "policy", "study.db", "--output", "policy.txt")
    assert code == 2
    assert "ends in .json or .csv" in err


def test_the_bundle_is_written_and_its_digest_said(place, discreet, run):
    arguments = ("start", "study.db", "--design", "design.toml", "--trust", "none", "--rehearse")
    run(*arguments)
    code, out, _ = discreet("study", "bundle", "study.db")
    digest = hashlib.sha256((place / "study.zip").read_bytes()).hexdigest()
    assert code == 0
    assert out.startswith("study.zip: no privacy")
    assert f"SHA-256 {digest}" in out
    assert f"python -I review.py --head {resumed(place).head}" in out
    plain = run("bundle", "study.db", "--output", "other.zip")
    content = (place / "other.zip").read_bytes()
    assert plain["sha256"] == hashlib.sha256(content).hexdigest()
    assert (plain["bundle"], plain["head"]) == ("other.zip", resumed(place).head)


def test_where_it_cannot_be(rehearsed, discreet):
    code, out, err = discreet("study", "bundle", "study.db", "--output", "page.txt")
    assert (code, out) == (2, "")
    assert "ends in .zip" in err
    code, _, err = discreet("study", "bundle", "study.db", "--head", "0" * 64)
    assert code == 2
    assert "an older copy" in err
    assert not (rehearsed / "study.zip").exists()


def test_a_whole_file(rehearsed, run, discreet):
    head = resumed(rehearsed).head
    assert run("verify", "study.db", "--head", head)["verified"]
    code, out, _ = discreet("study", "verify", "study.db")
    assert code == 0
    assert "every row matches the chain of hashes" in out
    assert "give the --head that you noted" in out


def test_an_edited_or_older_one(rehearsed, discreet):
    code, out, err = discreet("study", "verify", "study.db", "--head", "0" * 64)
    assert (code, out) == (2, "")
    assert "an older copy or another study" in err
    sql(rehearsed / "study.db", "UPDATE config SET config = replace(config, '1.0', '9.0')")
    code, out, err = discreet("study", "verify", "study.db", "--json")
    assert (code, err) == (2, "")
    assert "was edited or damaged" in json.loads(out)["error"]


def test_fewer_users_and_a_new_token(place, run, discreet):
    run("start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--rehearse")
    before = resumed(place)
    again = run("reissue", "study.db", "--users", "7")
    assert again["next_batch"] == 7
    assert again["token"] == resumed(place).token != before.token
    assert again["epsilon"] == 1
    assert run("reissue", "study.db", "--returning", "unseen")["epsilon"] == 1
    code, _, err = discreet("study", "reissue", "study.db", "--returning", "seen")
    assert code == 2
    assert "hides among all 7 of its batch" in err
    assert resumed(place).guarantee.epsilon == 1


def test_users_whose_data_was_seen_are_charged_again(rehearsed, discreet):
    code, out, _ = discreet("study", "reissue", "study.db", "--returning", "seen")
    assert code == 0
    assert "(2, 2e-06)-JDP" in out


def test_what_cannot_be(rehearsed, discreet):
    code, _, err = discreet("study", "reissue", "study.db", "--returning", "everybody")
    assert code == 2
    assert "'nobody', 'unseen', 'seen'" in err
    code, _, err = discreet("study", "reissue", "study.db", "--users", "999999")
    assert code == 2
    assert "users, got users=" in err
    assert len(resumed(rehearsed).ledger) == 1


def test_more_users_than_were_planned(rehearsed, run, discreet):
    before = run("show", "study.db")
    found = run("extend", "study.db", "--episodes", "900")
    assert (found["episodes"], found["next_batch"]) == (900, before["next_batch"])
    assert found["guarantee"] == before["guarantee"]
    code, out, _ = discreet("study", "show", "study.db")
    assert code == 0
    assert "extend" in out and "of 900" in out
    code, _, err = discreet("study", "extend", "study.db", "--episodes", "900")
    assert code == 2
    assert "Expected episodes >= 901" in err
    assert resumed(rehearsed).head == found["head"]


def test_an_end_before_all_came(rehearsed, run, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed))
    closed = run("close", "study.db")
    assert closed["finished"]
    assert closed["next_batch"] is None
    assert resumed(rehearsed).ledger[-1]["kind"] == "close"
    code, _, err = discreet("study", "tell", "study.db", "week.csv")
    assert code == 2
    assert "was closed" in err
    code, out, _ = discreet("study", "close", "study.db")
    assert code == 0
    assert "is closed" in out
    assert resumed(rehearsed).head == closed["head"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return prepared(tmp_path_factory.mktemp("bad"))


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_exit_code_two_and_nothing_changed(folder, monkeypatch, discreet, case):
    monkeypatch.chdir(folder)
    before = everything_in(folder)
    code, out, err = refused(case, discreet)
    said = [line for line in err.splitlines() if not line.endswith(" ...")]  # progress
    assert code == 2
    assert out == ""
    assert len(said) == 1
    assert said[0].startswith("Error: ")
    assert CASES[case][2] in said[0]
    assert len(re.findall(r"[a-z)'][.?] [A-Z]", said[0])) <= 2
    assert everything_in(folder) == before


def test_a_value_that_may_be_anything_is_not_known_yet(rehearsed, discreet):
    for command in ("show", "policy", "close"):
        code, out, _ = discreet("study", command, "study.db")
        assert code == 0
        assert out.count("not known yet") == 2, command  # the study's, and today's
    found = json.loads(discreet("study", "show", "study.db", "--json")[1])
    low, high = found["reward_range"]
    steps = len(read_design("design.toml").vocabulary.steps)
    assert found["today"]["low"] == low * steps and found["today"]["high"] == high * steps


class TestFirstDesign:
    """`discreet design`: by the header alone, with blanks for what is public."""

    HEADER = 'Patient;visit;condition;drug;score;note;a \\ "x"'
    ROW = "ann;1;rare disease;treat;977;secret;1"
    FILLED = (
        ("states = []", 'states = ["ill", "well"]'),
        ("actions = []", 'actions = ["wait", "treat"]'),
        ("steps = []", "steps = [1, 2]"),
        ("reward_range = []", "reward_range = [0, 10]"),
    )

    @pytest.fixture
    def table(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        header = self.HEADER.replace('"', '""').split(";")
        text = ";".join(f'"{name}"' for name in header) + f"\n{self.ROW}\n"
        (tmp_path / "visits.csv").write_text(text)

    def test_it_parses_when_the_blanks_are_filled(self, table, discreet):
        code, out, _ = discreet("design", "visits.csv")
        assert code == 0
        assert "is not private" in out
        assert "states, actions, steps, reward_range in [table]. Look it up" in out
        assert "Next: when nothing is empty, discreet check table visits.csv" in out
        text = Path("design.toml").read_text()
        assert "rare disease" not in text and "977" not in text and "secret" not in text
        code, _, err = discreet("check", "table", "visits.csv", "--design", "design.toml")
        assert code == 2
        assert "got nothing for states, actions, steps, reward_range in [table]; fill" in err
        for blank, filled in self.FILLED:
            assert blank in text
            text = text.replace(blank, filled)
        Path("design.toml").write_text(text)
        code, out, _ = discreet("check", "table", "visits.csv", "--design", "design.toml", "--json")
        kinds = {problem["kind"] for problem in json.loads(out)["problems"]}
        assert code == 1 and kinds == {
            "unknown state in 'condition'",
            "reward out of range in 'score'",
            "episode that ended early",
        }

    def test_what_somebody_knows_is_filled_in(self, table, discreet):
        code, out, _ = discreet(
            "design", "visits.csv", "--output", "d.toml", "--states", "ill,well", "--actions", "2",
            "--steps", "3", "--reward-range", "0,10", "--column", "state=note", "--json",
        )  # fmt: skip
        assert code == 0
        assert json.loads(out)["blanks"] == []
        assert json.loads(out)["format"] == {"delimiter": ";"}
        written = read_design("d.toml")
        assert written.vocabulary.shape == library.mdp.Shape(2, 2, 3)
        assert written.format.columns["state"] == "note"
        assert written.format.columns["user"] == "Patient"

    def test_a_column_that_nobody_named_is_a_blank(self, table, discreet):
        Path("visits.csv").write_text("person;visit;how;drug;score\n")
        options = ("--states", "2", "--actions", "2", "--steps", "2", "--reward-range", "0,1")
        code, out, _ = discreet("design", "visits.csv", *options, "--json")
        assert code == 0 and json.loads(out)["blanks"] == ["state in [table.columns]"]
        _, _, err = discreet("check", "table", "visits.csv", "--design", "design.toml")
        assert "got nothing for state in [table.columns]" in err

    @pytest.mark.parametrize("row", ["P-001;1;low;wait;3,5", "ann;2024-01-05;ill;wait"])
    def test_a_table_without_names_is_refused(self, table, discreet, row):
        Path("visits.csv").write_text(f"{row}\nP-002;2;low;wait;2\n")
        code, _, err = discreet("design", "visits.csv")
        assert code == 2 and "looks like somebody's data; give the table a first line" in err
        assert not Path("design.toml").exists()

    def test_it_overwrites_nothing(self, table, discreet):
        Path("design.toml").write_text("mine")
        code, _, err = discreet("design", "visits.csv")
        assert code == 2 and "is there already" in err
        assert Path("design.toml").read_text() == "mine"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("none.csv",), "No such file"),
            (("visits.csv", "--column", "who=id"), "Unknown role"),
            (("visits.csv", "--column", "id"), "Expected --column name=value"),
            (("visits.csv", "--reward-range", "3"), "LOW,HIGH"),
            (("visits.csv", "--output", "d.json"), ".toml"),
        ],
    )
    def test_what_is_refused(self, table, discreet, options, said):
        code, _, err = discreet("design", *options)
        assert code == 2 and said in err
        assert not Path("design.toml").exists()
