"""`discreet study tell`: tables, reports, and what is refused."""

import numpy as np

from discreet.device import load
from discreet.mdp.simulation import sample_trajectories
from discreet.privacy.guarantee import REHEARSED
from discreet.study.dossier.page import Material, render
from discreet.study.files import WHOLE
from helpers.dossiers import section
from helpers.studies import RIVER, everything_in
from helpers.study_commands import resumed, write_table


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
    assert "has taken part already" in err or "takes 1 to" in err
    assert everything_in(rehearsed) == before


def test_it_counts_what_the_library_counts(rehearsed, run, tmp_path):
    import shutil

    import discreet as library

    study = resumed(rehearsed)
    shutil.copy(study.path, rehearsed / "twin.db")
    week = write_table(rehearsed / "week.csv", study)
    run("tell", "study.db", "week.csv")
    twin = library.resume(rehearsed / "twin.db")
    twin.tell(week, users=[f"patient {i}" for i in range(len(week))])
    assert twin.head == resumed(rehearsed).head


def test_fewer_users_may_come_and_the_table_says_so(rehearsed, discreet):
    study = resumed(rehearsed)
    write_table(rehearsed / "week.csv", study, users=5)
    code, out, _ = discreet("study", "tell", "study.db", "week.csv", "--show-left-out")
    assert code == 0
    assert "5 users" in out
    assert REHEARSED in out
    assert "left the policy" not in out
    assert resumed(rehearsed).users == 5


def test_who_left_the_policy_is_for_the_eyes_of_the_operator(rehearsed, discreet):
    write_table(rehearsed / "week.csv", resumed(rehearsed), users=5)
    _, _, err = discreet("study", "tell", "study.db", "week.csv", "--show-left-out")
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
    material = Material(study, study.ledger, [], None, "", "")
    assert f"1 of 1 batches: {WHOLE}." in section(render(material), 2)


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
