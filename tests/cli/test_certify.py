"""`discreet certify`: a file that a reviewer can check, and the check."""

import json

import pytest

pytest.importorskip("flint")

SMALL = ["--states", "2", "--horizon", "2", "--users", "2000"]
POOLED = ["--episodes", "9", "--stationary"]


def test_makes_a_file_and_verifies_it(discreet, tmp_path):
    path = str(tmp_path / "certificate.json")
    code, out, err = discreet("certify", *SMALL, "--output", path)
    assert (code, "Error" in err) == (0, False)  # progress may be told there
    assert "Certified: delta(1) <= " in out
    assert "bound / delta" in out
    assert "Not covered: that one user moves the counters as stated" in out
    code, out, err = discreet("certify", "--verify", path)
    assert (code, "Error" in err) == (0, False)
    assert out.startswith("Verified (classes): delta(1) is at most ")


def test_an_edited_file_is_refused(discreet, tmp_path):
    path = tmp_path / "certificate.json"
    discreet("certify", *SMALL, "--trust", "central", "--output", str(path))
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "1/2"'))
    code, out, err = discreet("certify", "--verify", str(path))
    assert (code, out) == (1, "")
    assert "is refused: The file was edited" in err
    code, out, _ = discreet("certify", "--verify", str(path), "--json")
    assert code == 1
    assert json.loads(out)["verified"] is False


def test_json_holds_the_certificate(discreet):
    code, out, _ = discreet("certify", *SMALL, "--trust", "local", "--json")
    summary = json.loads(out)
    assert code == 0
    assert summary["holds"]
    assert summary["certificate"]["law"]["name"] == "one-step"
    assert summary["certificate"]["bound"] == "0"


@pytest.mark.parametrize(
    ("arguments", "law"),
    [
        (["--trust", "central", "--mechanism", "gaussian"], "discrete-gaussian"),
        (["--trust", "central", "--delta", "0"], "discrete-laplace"),
        (["--trust", "central", "--episodes", "500"], "gaussian-grid"),
        (["--trust", "local", "--mechanism", "gaussian", *POOLED], "piled-gaussian"),
        (["--trust", "shuffle", "--honest", "0.5"], "classes"),
        (["--trust", "shuffle", "--mechanism", "bits"], "binomial"),
        (["--trust", "shuffle", "--mechanism", "bits", "--epsilon", "10"], "table"),
        (["--trust", "local", "--mechanism", "randomized-response"], "randomized-response"),
    ],
)
def test_every_trust_model(discreet, arguments, law):
    code, out, _ = discreet("certify", *SMALL, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["law"]["name"] == law


def test_bad_requests_are_one_sentence(discreet):
    for arguments, message in (
        (["--trust", "none"], "promises nothing"),
        (["--trust", "nobody"], "Unknown trust model"),
        (["--trust", "central", "--stationary"], "give --episodes as well"),
        (["--verify", "missing.json"], "Cannot read missing.json"),
    ):
        code, _, err = discreet("certify", *SMALL, *arguments)
        assert code != 0
        assert message in err
        assert err.count("\n") == 1


def test_the_check_of_a_certificate_can_be_read_by_a_script(discreet, tmp_path):
    path = str(tmp_path / "certificate.json")
    discreet("certify", *SMALL, "--trust", "local", "--output", path)
    code, out, _ = discreet("certify", "--verify", path, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["verified"]
    assert found["law"]["name"] == "one-step"
    assert found["moves"] == [{"shift": 1, "times": 1}, {"shift": -1, "times": 1}]
    assert (found["epsilon"], found["delta"], found["bound"]) == ("1", "0", "0")
    assert found["recomputed"] == 0
    assert "trust assumptions" in " ".join(found["not_covered"])
    assert found["unverified_comments"]["mechanism"] == "split"


def test_an_edited_story_is_no_part_of_what_is_verified(discreet, tmp_path):
    path = tmp_path / "certificate.json"
    discreet("certify", *SMALL, "--trust", "central", "--output", str(path))
    data = json.loads(path.read_text())
    del data["digest"]
    data["about"]["guarantee"] = "(0.1, 1e-09)-LDP, nobody trusted"
    path.write_text(json.dumps(data))
    code, out, _ = discreet("certify", "--verify", str(path))
    proven, comments = out.split("NOT verified")
    assert code == 0
    assert "LDP" not in proven
    assert "epsilon: 1\n" in proven
    assert "nobody trusted" in comments
    path.write_text(json.dumps(data | {"about": [1]}))
    code, out, err = discreet("certify", "--verify", str(path))
    assert (code, out) == (1, "")
    assert err.count("\n") == 1


def test_what_cannot_be_written_or_certified_is_refused_first(discreet, tmp_path):
    for arguments, message in (
        (["--output", str(tmp_path / "none" / "x.json")], "there is no folder"),
        (["--output", str(tmp_path)], "is a folder"),
        (["--epsilon", "1e308"], "epsilon <= 5000"),
        (["--delta", "1e-320"], "delta = 0 or >= 1e-30"),
        (["--users", str(10**21)], "users <= 1e15"),
        (["--trust", "central", "--episodes", str(10**21)], "at most 1e7 episodes"),
    ):
        code, out, err = discreet("certify", *SMALL, *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("mechanism", ["toeplitz", "tree-laplace"])
def test_a_mechanism_of_streams_alone_streams_all_users(discreet, mechanism):
    code, out, _ = discreet(
        "certify", *SMALL, "--trust", "central", "--mechanism", mechanism, "--json"
    )
    assert code == 0
    assert json.loads(out)["certificate"]["about"]["episodes"] == "2000"
