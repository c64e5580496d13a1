"""`discreet calibrate`: what a person reads, for every trust model."""

import json

import pytest

SMALL = ["--states", "2", "--actions", "2", "--horizon", "2", "--users", "2000"]


def test_all_trust_models_side_by_side(discreet):
    code, out, err = discreet("calibrate", *SMALL)
    assert (code, err) == (0, "")
    assert "Noise on one counter after 2,000 users" in out
    for word in ("central", "shuffle", "local", "batch", "continual", "(1, 1e-06)-SDP"):
        assert word in out
    rows = json.loads(discreet("calibrate", *SMALL, "--json")[1])["results"]
    assert [(row["trust"], row["schedule"]) for row in rows] == [
        ("central", "batch"),
        ("shuffle", "batch"),
        ("local", "batch"),
        ("central", "continual"),
        ("local", "continual"),
    ]


def test_one_schedule_only(discreet):
    rows = json.loads(discreet("calibrate", *SMALL, "--schedule", "continual", "--json")[1])[
        "results"
    ]
    assert {row["schedule"] for row in rows} == {"continual"}


def test_shuffle_says_bits_messages_and_what_papers_deliver(discreet):
    bits = ("--trust", "shuffle", "--mechanism", "bits")
    _, out, _ = discreet("calibrate", *SMALL, *bits)
    assert "Noise bits per user and counter: 1, one with probability " in out
    assert "Each user sends " in out
    assert "assuming that the shuffler does not collude" in out
    assert "The papers' constants claim" in out


def test_shuffle_by_histogram_says_cells_parties_and_what_a_run_costs(discreet):
    words = ("calibrate", *SMALL, "--trust", "shuffle")
    _, out, _ = discreet(*words, "--learner", "flow-ucb")
    assert "A group of rewards has 5 cells; noise cells from each user: 1, dummies " in out
    assert "If both collude: none (they see the episode)." in out
    assert "A whole run of 2,000 users in " in out
    assert "The papers' constants claim" in out
    report = json.loads(discreet(*words, "--json")[1])
    assert (report["mechanism"], report["derived"], report["run"]) == (
        "histogram",
        ["visits"],
        None,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--learner", "flow-ucb"], "give --trust too"),
        (["--learner", "flow-ucb", "--trust", "central"], "they hand over raw episodes"),
        (["--trust", "local", "--honest", "0.5"], "--honest belongs to --trust shuffle"),
        (["--trust", "local", "--users", "many"], "Expected --users to be whole numbers"),
        (["--trust", "local", "--users", "2.5"], "got '2.5'"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(discreet, options, sentence):
    code, out, err = discreet("calibrate", *options)
    assert (code, out) == (2, "")
    assert sentence in err


def test_users_are_written_as_in_other_commands(discreet):
    _, out, _ = discreet("calibrate", "--trust", "shuffle", "--users", "2e4", "--json")
    assert json.loads(out)["users"] == 20_000


def test_local_says_what_one_report_carries(discreet):
    _, out, _ = discreet("calibrate", *SMALL, "--trust", "local")
    assert "One user's report: noise std " in out
    assert "Each user sends one message, " in out
    _, out, _ = discreet("calibrate", *SMALL, "--trust", "local")
    assert "Guarantee: (1, 0)-LDP" in out


def test_without_privacy_there_is_no_noise(discreet):
    report = json.loads(discreet("calibrate", *SMALL, "--trust", "none", "--json")[1])
    assert set(report["noise_std"].values()) == {0.0}
    assert "no privacy" in discreet("calibrate", *SMALL, "--trust", "none")[1]


def test_fewer_honest_users_need_more_noise(discreet):
    def noise(*more):
        answer = discreet("calibrate", *SMALL, "--trust", "shuffle", "--json", *more)[1]
        return json.loads(answer)["noise_std"]["visits"]

    assert noise("--honest", "0.5") > noise()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--trust", "centrl"], "did you mean 'central'"),
        (["--mechanism", "laplace"], "give --trust as well"),
        (["--schedule", "daily"], "schedule='daily'"),
        (["--trust", "shuffle", "--schedule", "continual"], "Shuffle has no continual release"),
        (["--epsilon", "0"], "epsilon > 0"),
        (["--delta", "2"], "delta"),
        (["--users", "0"], "integer >= 1"),
        (["--trust", "local", "--statistics", "visit"], "statistics='visit'"),
        (["--trust", "local", "--calibration", "folklore"], "calibration"),
    ],
)
def test_mistakes_get_one_sentence(discreet, arguments, sentence):
    code, out, err = discreet("calibrate", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert sentence in err


def test_an_open_choice_says_what_was_taken(discreet):
    words = ("calibrate", *SMALL, "--trust", "central", "--statistics", "transitions,rewards")
    _, out, _ = discreet(*words, "--epsilon", "10")
    assert "mechanism laplace" in out
    assert "Guarantee: (10, 0)-JDP" in out
    assert json.loads(discreet(*words, "--json")[1])["mechanism"] == "laplace"


@pytest.mark.parametrize(
    ("users", "least", "most"), [("20000", 101.0, 102.0), ("1000000", 132.5, 133.5)]
)
def test_a_mechanism_of_streams(discreet, users, least, most):
    """The worst time of the column-normalised square root at H=6, (1, 1e-6)."""
    words = ("calibrate", "--trust", "central", "--mechanism", "toeplitz", "--users", users)
    code, out, _ = discreet(*words, "--schedule", "continual", "--json")
    row = json.loads(out)
    assert (code, row["schedule"], row["mechanism"]) == (0, "continual", "toeplitz")
    assert least < row["noise_std"]["transitions"] <= most


def test_the_least_noise_of_one_step_is_laplace(discreet):
    arguments = ("--trust", "central", "--horizon", "1", "--json")
    row = json.loads(discreet("calibrate", *arguments)[1])
    assert (row["mechanism"], row["guarantee"]["delta"]) == ("laplace", 0.0)
    assert row["noise_std"]["transitions"] <= 8.6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--epsilon", "1e308"), "Expected epsilon <= 1e+09, got epsilon=1e+308"),
        (("--delta", "1e-320"), "Expected delta=0 or delta >= 1e-300, got delta=1e-320"),
        (("--trust", "shuffle", "--users", str(10**21)), "use smaller batches"),
    ],
)
def test_numbers_out_of_range_are_refused_in_one_sentence(discreet, options, said):
    code, out, err = discreet("calibrate", *SMALL, *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_a_budget_of_concentrated_privacy(discreet):
    code, out, _ = discreet("calibrate", "--trust", "central", "--rho", "0.1", "--json")
    found = json.loads(out)
    assert code == 0 and found["guarantee"]["rho"] == 0.1
    assert found["concentrated"] <= 0.1
    code, out, _ = discreet("calibrate", "--trust", "central", "--rho", "0.1")
    assert code == 0 and "(1.995, 1e-06)-JDP by 0.1-zCDP" in out
    assert "Also" not in out  # once is enough
    both = ("--rho", "0.1", "--epsilon", "1")
    code, _, err = discreet("calibrate", "--trust", "central", *both)
    assert code == 2 and "leave one of them out" in " ".join(err.split())
    code, _, err = discreet("calibrate", "--rho", "0.1")
    assert code == 2 and "--rho belongs to --trust central" in " ".join(err.split())


@pytest.mark.parametrize("trust", ["central", "shuffle", "local"])
def test_people_who_return(discreet, trust):
    options = ["--trust", trust, "--participations", "4", "--json"]
    code, out, _ = discreet("calibrate", *SMALL, *options)
    found = json.loads(out)
    assert (code, found["participations"]) == (0, 4)
    assert found["guarantee"]["unit"] == "one person, up to 4 episodes"


@pytest.mark.parametrize(
    ("words", "gigabytes"),
    [(("--trust", "local"), "80"), (("--schedule", "continual"), "800,000"), ((), "80")],
    ids=str,
)
def test_what_no_memory_holds_is_refused_with_an_estimate(discreet, words, gigabytes):
    size = ("--states", "100000", "--actions", "100", "--horizon", "100")
    code, _, err = discreet("calibrate", *size, *words)
    assert code == 2
    assert f"100,000 states, 100 actions and horizon 100, which take about {gigabytes} GB" in err
    assert discreet("calibrate", *size, "--trust", "central")[0] == 0
