"""`discreet study start`: from a design, from options, or both."""

import discreet as library
from discreet.privacy.guarantee import REHEARSED

SIZES = ("--states", "3", "--actions", "a,b", "--steps", "2", "--episodes", "1e3")


def test_it_prints_what_will_be_promised_and_how_many_users_are_needed(rehearsed, discreet):
    code, out, _ = discreet(
        "study", "start", "b.db", "--design", "design.toml", "--rehearse", "--seed", "2"
    )
    assert code == 0
    assert f"{REHEARSED}: (1, 1e-06)-JDP" in out
    assert "users are needed to tell actions apart everywhere" in " ".join(out.split())
    assert "who took part, and how many in each batch, is public" in out
    assert "discreet study ask b.db" in out


def test_a_secure_study_says_nothing_of_a_rehearsal(place, run):
    made = run("start", "study.db", "--design", "design.toml")
    assert not made["simulated"]
    assert made["guarantee"] == "(1, 1e-06)-JDP, one user's whole episode, replace-one"
    study = library.resume("study.db")
    assert made["head"] == study.head
    assert study.names.steps == ("1", "2", "3", "4")
    assert study.config["table"] == {
        "columns": {"user": "patient", "step": "visit"},
        "reward_range": [0, 10],
    }


def test_options_hold_instead_of_the_file(place, run):
    made = run(
        "start", "study.db", "--design", "design.toml", "--trust", "shuffle", "--honest", "0.9",
        "--epsilon", "2", "--episodes", "500", "--start", "ill,well", "--set", "shrink=0.5",
        "--rehearse",
    )  # fmt: skip
    study = library.resume("study.db")
    assert made["guarantee"].startswith(f"{REHEARSED}: (2, 1e-06)-SDP")
    assert study.config["trust"]["honest"] == 0.9
    assert study.config["start_states"] == [0, 2]
    assert study.config["settings"] == {"mixing": False, "shrink": 0.5}
    assert study.episodes == 500


def test_a_study_needs_no_file(place, run):
    made = run("start", "s.db", *SIZES, "--trust", "local", "--epsilon", "1", "--rehearse")
    assert made["episodes"] == 1000
    assert library.resume("s.db").names.actions == ("a", "b")
    made = run("start", "n.db", *SIZES, "--trust", "none", "--rehearse", "--stationary")
    assert made["guarantee"] == "no privacy"
    assert made["epsilon"] is None


def test_another_trust_model_has_other_options(place, run):
    text = (place / "design.toml").read_text().replace('"central"', '"shuffle"\nhonest = 0.9')
    (place / "design.toml").write_text(text)
    run("start", "s.db", "--design", "design.toml", "--trust", "none", "--rehearse")
    assert library.resume("s.db").guarantee.notion == "none"


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
    assert "delta = 0.5 lets the promise fail" in err
