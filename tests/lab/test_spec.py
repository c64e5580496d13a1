"""Experiment files: what they say, what is refused, and those that come along."""

import re
from dataclasses import replace

import pytest

from discreet.errors import DiscreetError, InvalidInputError, UnknownNameError
from discreet.lab import spec
from discreet.lab.spec import experiment_names, load_experiment, parse_experiment
from discreet.lab.tasks import expand

MINIMAL = """
name = "x"
title = "X"
episodes = [1e4, 20_000]
[[environments]]
name = "RiverSwim"
parameters = {states = 4}
[[learners]]
name = "flow-ucb"
settings = {stationary = true}
[[trusts]]
model = "central"
epsilon = 1
delta = 1e-6
[variants.quick]
runs = 2
"""


def test_reads_and_writes_back():
    experiment = parse_experiment(MINIMAL)
    assert experiment.episodes == (10_000, 20_000)
    assert experiment.trusts[0].epsilon == (1.0,)
    assert parse_experiment(experiment.to_toml()) == experiment


def test_variant_replaces_only_its_keys():
    quick = parse_experiment(MINIMAL).variant("quick")
    assert quick.runs == 2
    assert quick.episodes == (10_000, 20_000)


@pytest.mark.parametrize("name", experiment_names())
def test_shipped_experiments_are_valid_and_have_a_quick_variant(name):
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.expect, "every shipped experiment says what to expect"
    quick = experiment.variant("quick")
    assert parse_experiment(quick.to_toml()) == quick


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (("episodes =", "episode ="), UnknownNameError, "did you mean 'episodes'"),
        (("stationary = true}", "stationary = true}\nlable = 'a'"), UnknownNameError, "'label'"),
        (('model = "central"', 'mode = "central"'), UnknownNameError, r"key of \[\[trusts\]\]"),
        (('model = "central"', 'model = "centrl"'), UnknownNameError, "did you mean 'central'"),
        (("epsilon = 1", "epsilon = -1"), InvalidInputError, "epsilon > 0"),
        (("epsilon = 1", 'epsilon = "one"'), InvalidInputError, "finite number"),
        (("[1e4, 20_000]", "[0.5]"), InvalidInputError, "to be an integer"),
        (('title = "X"', "title = 3"), InvalidInputError, "Expected title to be text"),
        (('title = "X"', ""), InvalidInputError, "the key 'title' in an experiment"),
        (("runs = 2", "seeds = 2"), UnknownNameError, "key of a variant"),
        (('name = "x"', "name = x"), InvalidInputError, "it is no TOML"),
    ],
)
def test_mistakes_are_named(change, error, words):
    assert change[0] in MINIMAL
    with pytest.raises(error, match=words):
        parse_experiment(MINIMAL.replace(*change, 1))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("name = 1", "Expected name to be text, got name=1"),
        ("description = []", "Expected description to be text"),
        ("expect = true", "Expected expect to be text"),
        ("paper = 2", "Expected paper to be text"),
        ('plots = "regret"', "Expected plots to be a list of values"),
        ("plots = [1]", "Expected plots to be text, got plots=1"),
        ("seed = 1.5", "Expected seed to be an integer"),
        ("seed = true", "Expected seed to be an integer"),
        ("seed = -1", "integer >= 0, got seed=-1"),
        ("runs = 0", "integer >= 1, got runs=0"),
        ('runs = "20"', "Expected runs to be an integer"),
        ("episodes = true", "episodes to be an integer"),
        ("[[environments]]\nname = 3", "Expected name to be text"),
        ('[[environments]]\nparameters = "x"', "Expected parameters to be a table"),
        ("[[environments]]\nrelabel = 1", "Expected relabel to be True or False"),
        ("[[environments]]\nvary = 1", "Expected vary to be text"),
        ("[[environments]]\nparameters = {}", "the key 'name' in [[environments]]"),
        ("[[learners]]\nsettings = []", "Expected settings to be a table"),
        ("[[learners]]\ntrusts = 'none'", "Expected trusts to be a list of values"),
        ("[[learners]]\nenvironments = 1", "Expected environments to be a list of values"),
        ("[[learners]]\nmax_episodes = 1e6", "Expected max_episodes to be an integer"),
        ("[[trusts]]\ndelta = 'small'", "Expected delta to be a finite number"),
        ("[[trusts]]\nmechanism = 1", "Expected mechanism to be text"),
        ("[[trusts]]\nepsilon = 1", "the key 'model' in [[trusts]]"),
        (
            "environments = 3",
            "Expected environments to be tables [[environments]], got environments=3",
        ),
        ('learners = ["ucbvi"]', "Expected learners to be tables [[learners]]"),
        ("trusts = {model = 'none'}", "Expected trusts to be tables [[trusts]]"),
        ("variants = 3", "Expected variants to be a table [variants]"),
        ("variants = {quick = 3}", "Expected variants.quick to be a table [variants.quick]"),
        ("[[trusts]]\nmodel = 'local'", "at least one epsilon for trust model 'local'"),
    ],
)
def test_every_key_of_the_wrong_kind_is_named(line, words):
    head = "" if line.startswith("name") else 'name = "x"'
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        parse_experiment(f'{head}\ntitle = "X"\n{line}')


@pytest.mark.parametrize(
    ("kept", "missing"), [("learners", "environments"), ("environments", "learners")]
)
def test_an_experiment_without_a_part_is_named(kept, missing):
    with pytest.raises(InvalidInputError, match=f"no {missing}; add a"):
        parse_experiment(f'name = "x"\ntitle = "X"\n[[{kept}]]\nname = "y"')


def test_an_unknown_variant_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'quick'"):
        parse_experiment(MINIMAL).variant("quik")


def test_a_variant_may_change_the_episodes():
    text = MINIMAL.replace("runs = 2", "episodes = 1e3")
    assert parse_experiment(text).variant("quick").episodes == (1000,)


def test_no_privacy_is_one_model_and_takes_no_epsilon():
    rows = parse_experiment(MINIMAL + '[[trusts]]\nmodel = "none"\n').trusts
    assert [len(list(row.models())) for row in rows] == [1, 1]


@pytest.mark.parametrize(
    ("line", "got"),
    [
        ("epsilon = [1.0]", r"epsilon=\(1.0,\)"),
        ("delta = 1e-6", "delta=1e-06"),
        ('mechanism = "laplace"', "mechanism='laplace'"),
        ('calibration = "paper"', "calibration='paper'"),
    ],
)
def test_an_option_beside_no_privacy_is_refused(line, got):
    with pytest.raises(InvalidInputError, match=f"guarantees nothing, got {got}; leave it out"):
        parse_experiment(MINIMAL + f'[[trusts]]\nmodel = "none"\n{line}\n')


def test_missing_file_and_unknown_name():
    with pytest.raises(InvalidInputError, match="No such file"):
        load_experiment("nowhere.toml")
    with pytest.raises(InvalidInputError, match=r"ends in \.toml, got 'mine\.tml'"):
        load_experiment("mine.tml")
    with pytest.raises(UnknownNameError, match="price-of-trust"):
        load_experiment("price-of-trus")


PAPER = """
name = "p"
title = "P"
[[environments]]
name = "RiverSwim"
[[learners]]
paper = "001"
epsilon = [0.1, 1]
[[learners]]
paper = "003-jdp"
epsilon = 1
calibration = "exact"
settings = {constants = "practical"}
label = "repaired"
"""


def test_a_learner_may_be_a_paper():
    """Its name, settings and trust model are the preset's; what is given wins."""
    made = parse_experiment(PAPER)
    printed, repaired = made.learners
    assert (printed.name, printed.settings["structure"]) == ("sdp-pe", "paper")
    assert printed.title == "SDP-PE, paper 001"
    assert (repaired.name, repaired.settings, repaired.title) == (
        "dp-ucbvi",
        {"constants": "practical"},
        "repaired",
    )
    [row] = printed.trust_rows(made.trusts)
    assert (row.model, row.epsilon, row.delta) == ("shuffle", (0.1, 1.0), 1e-5)
    assert (row.mechanism, row.calibration) == ("bits", "paper-001")
    [row] = repaired.trust_rows(made.trusts)
    assert (row.model, row.mechanism, row.calibration) == ("central", "tree-laplace", "exact")
    assert parse_experiment(made.to_toml()) == made
    cells = expand(made)
    assert [(cell.learner.paper, cell.trust.epsilon) for cell in cells] == [
        ("001", 0.1),
        ("001", 1.0),
        ("003-jdp", 1.0),
    ]
    assert len({cell.key for cell in cells}) == 3


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        ('paper = "1"', "Unknown paper '1'"),
        ('paper = "001"\nname = "pe"', "without a name.*'sdp-pe', got name = 'pe'; leave"),
        ('paper = "001"\nsettings = 3', r"settings to be a table \[settings\], got settings=3"),
        ('paper = "003-ldp"\nepsilon = 1\ncalibration = "paper-002"', "which mixes papers"),
        ('name = "pe"\nepsilon = 1', r"in a \[\[trusts\]\] table"),
    ],
)
def test_a_paper_row_that_says_two_things_is_refused(learner, words):
    text = PAPER.split("[[learners]]", maxsplit=1)[0] + f"[[learners]]\n{learner}\n"
    with pytest.raises(DiscreetError, match=words):
        parse_experiment(text)


def test_a_paper_needs_an_epsilon():
    text = PAPER.split("[[learners]]", maxsplit=1)[0] + '[[learners]]\npaper = "001"\n'
    with pytest.raises(InvalidInputError, match="at least one epsilon"):
        expand(parse_experiment(text))


@pytest.mark.parametrize(
    "name", ["../../evil", "..", ".", "/tmp", "a/b", "a\\\\b", "", "-x", "a" * 101]
)
def test_a_name_is_never_a_path(name):
    with pytest.raises(InvalidInputError, match="which also names the result folder"):
        parse_experiment(f'name = "{name}"\ntitle = "X"')


def test_a_file_in_another_encoding_is_one_sentence_and_a_mark_at_its_beginning_none(tmp_path):
    path = tmp_path / "tiny.toml"
    text = parse_experiment(MINIMAL).to_toml()
    path.write_text(text, "utf-16")
    with pytest.raises(InvalidInputError, match=r"tiny\.toml': it is not UTF-8"):
        load_experiment(path)
    path.write_text(text, "utf-8-sig")
    assert load_experiment(path) == parse_experiment(text)


def test_nobody_means_a_billion_runs():
    with pytest.raises(InvalidInputError, match="got runs=1000000000; each has a file of its own"):
        replace(parse_experiment(MINIMAL), runs=10**9)


@pytest.mark.core
def test_names_and_titles():
    assert "price-of-trust" in spec.experiment_names()
    assert list(spec.titles()) == spec.experiment_names()
    assert all(spec.titles().values())


def test_titles_are_those_of_the_experiments():
    for name, title in spec.titles().items():
        assert load_experiment(name).title == title
