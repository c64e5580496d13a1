"""Design files: what `start` is told, in TOML."""

import json

import pytest

import discreet
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.study.design import Design, design_of, read_design
from helpers.studies import advance, rehearsed

PLAIN = {
    "states": ["ill", "well"],
    "actions": 2,
    "steps": 3,
    "episodes": 100,
    "trust": {"model": "shuffle", "epsilon": 1.0, "delta": 1e-6, "honest": 0.9},
    "settings": {"confidence": 0.5},
}


def test_every_argument_of_start(tmp_path):
    study = rehearsed(tmp_path / "study.db", design_of(PLAIN), 4)
    given = {
        "learner": "flow-ucb",
        "states": ["ill", "well"],
        "actions": 2,
        "horizon": 3,
        "episodes": 100,
        "trust": discreet.Shuffle(1.0, 1e-6, honest=0.9),
        "confidence": 0.5,
    }
    told = discreet.start_study(tmp_path / "told.db", sampler="simulation", seed=4, **given)
    assert study.config == told.config == discreet.open_study(told.path).config
    assert study.config["settings"] == {"confidence": 0.5} and "table" not in study.config
    assert study.names == design_of(PLAIN).vocabulary


@pytest.mark.parametrize(
    ("more", "batches"),
    [({}, 6), ({"settings": {"batches": 3}}, 3), ({"batches": 5}, 5)],
    ids=["as many as it takes", "three", "five"],
)
def test_a_design_limits_how_often_people_are_recruited(tmp_path, more, batches):
    plain = {**PLAIN, "states": 3, "steps": 4, "episodes": 3000, "settings": {}, **more}
    plain |= {"trust": {"model": "central", "epsilon": 1.0, "delta": 1e-6}}
    study = rehearsed(tmp_path / "study.db", design_of(plain))
    while not study.finished:
        advance(study, study.batches)
        study = discreet.open_study(study.path)  # the limit holds after a restart
    assert study.users == 3000
    assert study.batches <= batches if more else study.batches >= batches


def test_cut_points_make_the_states():
    cuts = {"table": {"cuts": [{"column": "pressure", "points": [90]}]}}
    both = design_of({**PLAIN, **cuts, "states": ["dead"]})
    assert both.vocabulary.states == ("pressure < 90", "pressure >= 90", "dead")
    alone = design_of({**{k: v for k, v in PLAIN.items() if k != "states"}, **cuts})
    assert alone.vocabulary.states == ("pressure < 90", "pressure >= 90")
    whole = design_of({**PLAIN, **cuts, "states": ["dead", "pressure < 90", "pressure >= 90"]})
    assert whole.vocabulary.states == ("dead", "pressure < 90", "pressure >= 90")  # as they stand
    kept = both.checked()
    assert kept.to_dict() == type(kept).from_dict(kept.to_dict()).to_dict()
    with pytest.raises(InvalidInputError, match="beside those of the cuts"):
        _ = design_of({**PLAIN, **cuts, "states": 3}).names


def test_a_study_keeps_how_its_tables_are_read(tmp_path):
    table = {"columns": {"user": "patient"}, "padding": {"end": "well"}}
    plain = {**PLAIN, "table": table, "settings": {"mixing": False}}
    study = rehearsed(tmp_path / "study.db", design_of(plain))
    (tmp_path / "t.csv").write_text("patient,step,state,action,reward\nann,0,ill,1,1\n")
    episodes, users = discreet.open_study(study.path).read_table(tmp_path / "t.csv")
    assert users == ["ann"]
    assert episodes.states.tolist() == [[0, 1, 1, 1]]
    assert episodes.actions[0, 1:].tolist() == study.ask().actions[1:, 1].tolist()
    with pytest.raises(InvalidInputError, match="padding to name one of the states"):
        rehearsed(tmp_path / "b.db", design_of(plain), table={"padding": {"end": "x"}})
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"trust": {"epsilon": 1}}, "trust model by name"),
        ({"trust": {"model": "local"}}, "Expected an epsilon"),
        ({"episodes": None}, "how many users"),
        ({"steps": None}, "Expected the steps"),
        ({"settings": {"seed": 1}}, "belongs outside"),
    ],
)
def test_what_is_missing(changes, said):
    with pytest.raises(InvalidInputError, match=said):
        design_of({**PLAIN, **changes}).checked()


def test_what_is_no_design(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'trust'"):
        design_of({"trusts": {}})
    for table in ("settings", "trust"):
        with pytest.raises(InvalidInputError, match=rf"a table \[{table}\]"):
            design_of({table: 3})
    for no_file_says in ("sampler", "seed"):
        with pytest.raises(UnknownNameError, match=no_file_says):
            design_of({no_file_says: 1})
    for content, said in ((b"\xff", "it is not UTF-8"), (b"a = ", "it is no TOML")):
        (tmp_path / "d.toml").write_bytes(content)
        with pytest.raises(InvalidInputError, match=said):
            read_design(tmp_path / "d.toml")
    with pytest.raises(InvalidInputError, match="Cannot read"):
        read_design(tmp_path)


def test_whoever_comes_late_begins_in_a_declared_start_state(tmp_path):
    late = {"table": {"late": {"state": "not yet"}}, "states": ["ill", "well", "not yet"]}
    for starts in (None, ["ill", "not yet"]):
        design = design_of({**PLAIN, **late, "start_states": starts})
        study = rehearsed(tmp_path / f"{starts is None}.db", design)
        assert study.config["table"] == {"late": {"state": "not yet", "reward": 0.0}}
    with pytest.raises(InvalidInputError, match="add it to start_states"):
        rehearsed(tmp_path / "study.db", design_of({**PLAIN, **late, "start_states": ["ill"]}))


def test_a_design_says_which_actions_are_possible(tmp_path):
    rule = {"states": ["well"], "steps": [0, 1], "actions": "1"}
    design = design_of({**PLAIN, "settings": {}, "allowed": [rule]})
    study = rehearsed(tmp_path / "study.db", design)
    assert study.names == design.vocabulary == discreet.open_study(study.path).names
    expected = [[[True, True], [False, True]]] * 2 + [[[True, True], [True, True]]]
    assert study.problem.shape.mask.tolist() == expected
    assert study.policy.actions.tolist() == [[0, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"states": ["wel"], "actions": ["1"]}, "got 'wel'; did you mean 'well'"),
        ({"states": ["well"]}, "with actions, and perhaps states and steps, got 'states'"),
        ({"state": ["well"], "actions": ["1"]}, "got 'state', 'actions'"),
        ({"actions": []}, "Expected at least one of actions"),
        ({"steps": [3], "actions": [0]}, "among the steps of the problem, got 3"),
        ("well", r"write \[\[allowed\]\] with states"),
    ],
)
def test_a_bad_table_of_allowed_actions_is_refused(rule, said):
    with pytest.raises(InvalidInputError, match=said):
        design_of({**PLAIN, "allowed": [rule]}).vocabulary  # noqa: B018 - reading it checks it


def test_tables_of_allowed_actions_that_leave_none_are_refused():
    rules = [{"states": ["ill"], "actions": [0]}, {"steps": [2], "actions": [1]}]
    with pytest.raises(InvalidInputError, match="got none in 'ill' at step '2'"):
        design_of({**PLAIN, "allowed": rules}).vocabulary  # noqa: B018


def made(**changes):
    given = {
        "learner": "flow-ucb",
        "trust": discreet.Shuffle(1, 1e-6, honest=0.9),
        "states": ["a", "b"],
        "actions": 2,
        "steps": 3,
        "episodes": 10,
        "start_states": None,
        "stationary": False,
        "sampler": "simulation",
        "seed": 4,
        "settings": {"confidence": 0.5},
    }
    return Design(**(given | changes)).checked()


def test_it_survives_a_file():
    plain = json.loads(json.dumps(made().to_dict()))
    assert plain == made().to_dict()
    design = Design.from_dict(plain)
    assert design.to_dict() == plain
    assert design.trust_model == discreet.Shuffle(1, 1e-6, honest=0.9)
    assert design.vocabulary.states == ("a", "b")
    assert design.problem.shape == discreet.mdp.Shape(2, 2, 3)
    assert design.problem.start.tolist() == [True, True]


def test_names_may_be_any_iterable_and_are_read_once():
    design = made(states=iter("ab"), actions=(1, 2), steps=range(1, 4), start_states=iter("b"))
    assert design.vocabulary.steps == ("1", "2", "3")
    assert design.to_dict()["start_states"] == [1]


def test_a_secure_study_has_a_seed_of_its_own_for_ties():
    seeds = {made(sampler="secure", seed=None).seed for _ in range(3)}
    assert len(seeds) == 3


def test_generators_follow_from_the_seed_and_differ():
    one, two = made().generators(), made().generators()
    draws = {name: int(rng.integers(2**60)) for name, rng in one.items()}
    assert len(set(draws.values())) == 3
    assert draws == {name: int(rng.integers(2**60)) for name, rng in two.items()}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"start_states": "ab"}, "as a list of states"),
        ({"start_states": ["c"]}, "among the 2 states"),
        ({"start_states": [None]}, "among the 2 states"),
        ({"settings": {"confidence": {1, 2}}}, "which a file can keep"),
        ({"states": 40_000}, "merge states"),
        ({"states": {"a": 1}}, "a list of names"),
    ],
)
def test_what_is_refused(changes, said):
    with pytest.raises(InvalidInputError, match=said):
        made(**changes)
