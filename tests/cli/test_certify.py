"""`discreet certify`: a file that a reviewer can check, and the check."""

import json

import pytest

SMALL = ["--states", "2", "--horizon", "2", "--users", "2000"]


def test_makes_a_file_and_verifies_it(discreet, tmp_path):
    path = str(tmp_path / "certificate.json")
    code, out, err = discreet("certify", *SMALL, "--output", path)
    assert (code, "Error" in err) == (0, False)  # progress may be told there
    assert "Certified: delta(1) <= " in out
    assert "bound / delta" in out
    assert "Not covered: that what runs is this release" in out
    code, out, err = discreet("certify", "--verify", path)
    assert (code, "Error" in err) == (0, False)
    assert out.startswith("Verified: (1, 1e-06)-SDP of transitions, rewards of 2 states, ")


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
    assert summary["certificate"]["noise"]["name"] == "one-step"
    assert summary["certificate"]["bound"] == "0"


@pytest.mark.parametrize(
    ("arguments", "noise"),
    [
        (["--trust", "central", "--mechanism", "gaussian"], "discrete-gaussian"),
        (["--trust", "central", "--delta", "0"], "discrete-laplace"),
        (["--trust", "central", "--episodes", "500"], "gaussian-grid"),
        (["--trust", "shuffle", "--honest", "0.5"], "histogram"),
        (["--trust", "shuffle", "--mechanism", "bits"], "binomial"),
        (["--trust", "local", "--mechanism", "split"], "one-step"),
    ],
)
def test_every_trust_model(discreet, arguments, noise):
    code, out, _ = discreet("certify", *SMALL, *arguments, "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["noise"]["name"] == noise


def test_bad_requests_are_one_sentence(discreet):
    for arguments, message in (
        (["--trust", "none"], "guarantees nothing"),
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
    assert found["noise"]["name"] == "one-step"
    assert found["moves"] == [{"shift": 1, "times": 1}, {"shift": -1, "times": 1}]
    assert (found["epsilon"], found["delta"], found["bound"]) == ("1", "0", "0")
    assert found["recomputed"] == 0
    assert "trust assumptions" in " ".join(found["not_covered"])
    assert found["release"]["mechanism"] == "split"
    assert found["claim"].startswith("(1, 0)-LDP of ")


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
def test_a_mechanism_of_streams(discreet, mechanism):
    words = ("certify", *SMALL, "--trust", "central", "--mechanism", mechanism)
    code, out, _ = discreet(*words, "--episodes", "2000", "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["release"]["episodes"] == 2000


CENTRAL = ["--trust", "central", "--mechanism", "gaussian", "--delta", "1e-5"]


@pytest.fixture(scope="module")
def central(tmp_path_factory):
    """The file of a central certificate."""
    from discreet.mdp.shape import Shape
    from discreet.privacy import Central, certify

    path = tmp_path_factory.mktemp("certificates") / "central.json"
    plan = Central(1, 1e-5).calibrate(Shape(states=2, actions=2, horizon=2))
    certify(plan).write(path)
    return str(path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--epsilon", "0.1"], "It proves epsilon 1, and 0.1 was asked for"),
        (["--epsilon", "2"], "noise.sigma is"),
        (["--delta", "1e-9"], "It proves delta 1e-05, and 1e-09 was asked for"),
        (
            ["--trust", "local", "--mechanism", "split"],
            "release.trust is 'central', and 'local' was asked for",
        ),
        (
            ["--mechanism", "laplace"],
            "release.mechanism is 'gaussian', and 'laplace' was asked for",
        ),
        (["--states", "4"], "release.states is 2, and 4 was asked for"),
        (["--actions", "3"], "release.actions is 2, and 3 was asked for"),
        (["--horizon", "6"], "release.horizon is 2, and 6 was asked for"),
        (["--statistics", "visits"], "release.statistics is"),
    ],
)
def test_a_certificate_of_something_else_is_refused(discreet, central, options, reason):
    code, out, _ = discreet("certify", "--verify", central, *SMALL, *CENTRAL)
    assert (code, out.split(" of ")[0]) == (0, "Verified: (1, 1e-05)-JDP")
    code, out, err = discreet("certify", "--verify", central, *SMALL, *CENTRAL, *options)
    assert (code, out) == (1, "")
    assert reason in err
    assert err.count("\n") == 1


def test_one_option_is_enough_to_compare(discreet, central):
    """The others then are what they are when a certificate is made."""
    for options in (["--epsilon", "0.1"], ["--epsilon", "1"], ["--users", "50"]):
        code, out, _ = discreet("certify", "--verify", central, *options)
        assert (code, out) == (1, "")
    code, out, _ = discreet("certify", "--verify", central, "--json", "--epsilon", "0.1")
    assert (code, json.loads(out)["verified"]) == (1, False)


DESIGN = """
learner = "flow-ucb"
episodes = 2000
states = 2
actions = 2
steps = 2
[trust]
model = "shuffle"
mechanism = "bits"
epsilon = 4.0
delta = 1e-3
"""


@pytest.fixture
def study(discreet, tmp_path, monkeypatch):
    """A design, a study of it, and a certificate of a batch of 500."""
    from discreet.privacy import certify
    from discreet.study.study import Study

    monkeypatch.chdir(tmp_path)
    (tmp_path / "design.toml").write_text(DESIGN)
    code, _, _ = discreet("study", "start", "mine.db", "--design", "design.toml", "--rehearse")
    assert code == 0
    certify(Study.read("mine.db").mechanism, users=500).write("c.json")
    return tmp_path


@pytest.mark.parametrize("file", ["design.toml", "mine.db"])
def test_a_certificate_for_a_design_or_a_study(discreet, study, file):
    verify = ["certify", "--verify", "c.json"]
    for options in ([], ["--users", "500"]):
        code, out, _ = discreet(*verify, "--for", file, *options)
        assert (code, out.split(" of ")[0]) == (0, "Verified: (4, 0.001)-SDP")
        assert "in a batch of 500 users, all of them honest" in out
    code, out, err = discreet(*verify, "--for", file, "--users", "400")
    assert (code, out) == (1, "")
    assert "release.users is 500, and 400 was asked for" in err


def test_a_batch_larger_than_the_study_is_none_of_its_batches(discreet, study):
    from discreet.privacy import certify
    from discreet.study.study import Study

    mine = Study.read("mine.db")
    more = mine.episodes + 1
    certify(mine.mechanism, users=more).write("c.json")
    for options, reason in (
        ([], f"a batch of {more} users"),
        (["--users", str(more)], "--users <="),
    ):
        code, out, err = discreet("certify", "--verify", "c.json", "--for", "mine.db", *options)
        assert code != 0
        assert out == ""
        assert reason in err


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("epsilon = 4.0", "epsilon = 2.0", "It proves epsilon 4, and 2"),
        ("epsilon = 4.0", "epsilon = 5.0", "noise."),
        ("delta = 1e-3", "delta = 1e-4", "It proves delta 0.001, and 0.0001"),
        ("states = 2", "states = 3", "release.states is 2, and 3"),
        ("steps = 2", "steps = 3", "release.horizon is 2, and 3"),
        ('"bits"', '"histogram"', "release.mechanism is 'bits', and 'histogram'"),
    ],
)
def test_a_certificate_for_another_design_is_refused(discreet, study, old, new, reason):
    (study / "design.toml").write_text(DESIGN.replace(old, new))
    code, out, err = discreet("certify", "--verify", "c.json", "--for", "design.toml")
    assert (code, out) == (1, "")
    assert reason in err


def test_options_that_do_not_go_together_are_refused(discreet, central):
    for options, message in (
        (["--for", "d.toml"], "--for belongs to --verify"),
        (["--verify", central, "--for", "d.toml", "--epsilon", "1"], "leave --epsilon out"),
        (["--verify", central, "--output", "c.json"], "leave --output out"),
        (["--verify", central, "--for", "none.toml"], "Cannot read 'none.toml'"),
    ):
        code, out, err = discreet("certify", *options)
        assert (code, out) == (2, "")
        assert message in err
