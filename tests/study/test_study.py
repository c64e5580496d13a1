"""Ask and tell: refusals count nothing, crashes count once or not at all, and it equals `learn`."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, StudyError, UnsupportedError
from discreet.learners.learn import make_batch_learner, public_facts
from discreet.learners.registry import get_learner
from discreet.mdp import make
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.mechanisms.shuffle import shuffle
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study import study_file

RIVER = make("RiverSwim", states=3, horizon=4, relabel=1)


def begin(path, trust=None, episodes=2_000, **changes):
    arguments = {
        "learner": "flow-ucb",
        "trust": trust or discreet.Central(epsilon=1, delta=1e-6),
        "states": 3,
        "actions": 2,
        "horizon": 4,
        "episodes": episodes,
        "start_states": [0],
        "sampler": "simulation",
        "seed": 5,
    }
    return discreet.start(path, **(arguments | changes))


def episodes_of(study, seed):
    rng = np.random.default_rng(seed)
    return sample_trajectories(RIVER, study.ask(), study.batch_size, rng)


def names(study):
    return [f"user-{study.users + i}" for i in range(study.batch_size)]


def advance(study, seed):
    study.tell(episodes_of(study, seed), users=names(study))


def test_a_whole_study_and_its_promise(tmp_path):
    study = begin(tmp_path / "study.json", episodes=300)
    while not study.finished:
        advance(study, study.batches)
    assert study.users == 300
    assert study.guarantee.notion == "JDP"
    assert study.guarantee.epsilon == 1
    assert study.guarantee.simulated
    with pytest.raises(StudyError, match="All 300 users"):
        study.ask()


def test_secure_is_the_default_and_cannot_be_seeded(tmp_path):
    pytest.importorskip("opendp")
    with pytest.raises(StudyError, match="cannot be seeded"):
        begin(tmp_path / "a.json", sampler="secure")
    study = begin(tmp_path / "b.json", sampler="secure", seed=None)
    assert not study.guarantee.simulated
    assert "SIMULATED" not in str(study.guarantee)
    advance(study, 0)
    assert study.batches == 1
    config = json.loads((tmp_path / "b.json").read_text())["config"]
    assert config["sampler"] == "secure"


def test_secure_noise_does_not_follow_from_the_file(tmp_path):
    """Copies of a secure study, told the same, draw different noise; those of a rehearsal agree."""
    pytest.importorskip("opendp")
    for sampler, seed in (("secure", None), ("simulation", 5)):
        path, copy = tmp_path / f"{sampler}.json", tmp_path / f"{sampler}-copy.json"
        study = begin(path, sampler=sampler, seed=seed)
        copy.write_bytes(path.read_bytes())
        told = []
        for one in (study, discreet.resume(copy)):
            one.tell(episodes_of(one, 0), users=names(one))
            told.append(json.loads(one.path.read_text())["learner"]["evidence"])
        assert (told[0] == told[1]) == (sampler == "simulation")


def test_the_file_holds_no_raw_data_and_no_names(tmp_path):
    path = tmp_path / "study.json"
    study = begin(path)
    advance(study, 0)
    assert "user-0" not in path.read_text()
    content = json.loads(path.read_text())
    parts = {"format", "config", "key", "users", "told", "guarantee", "learner", "streams", "head"}
    assert set(content) == parts
    assert set(content["told"][0]) == {"batch", "users", "policy", "before", "link"}


def test_resumes_with_the_same_question(tmp_path):
    path = tmp_path / "study.json"
    study = begin(path)
    for seed in range(3):
        advance(study, seed)
    again = discreet.resume(path)
    np.testing.assert_array_equal(again.ask().actions, study.ask().actions)
    assert (again.batch_size, again.token, again.users) == (
        study.batch_size,
        study.token,
        study.users,
    )
    advance(study, 7)
    copy = discreet.resume(path)
    np.testing.assert_array_equal(copy.ask().actions, study.ask().actions)


def test_equals_the_simulated_path(tmp_path):
    """The same draws through `learn`'s parts and through a study give the same policies."""
    study = begin(tmp_path / "study.json")
    problem = public_facts(RIVER, 2_000)
    seeds = RunSeeds(5)
    trust = discreet.Central(epsilon=1, delta=1e-6)
    learner = make_batch_learner(
        get_learner("flow-ucb"), problem, trust, seeds.generator("policy"), {}
    )
    sampler, rounding = (
        SimulationSampler(seeds.generator("noise")),
        seeds.generator("environment"),
    )
    for seed in range(12):
        batch = learner.ask()
        np.testing.assert_array_equal(batch.policy.actions, study.ask().actions)
        assert batch.users == study.batch_size
        drawn = episodes_of(study, seed)
        learner.tell(
            learner.plan.simulate(
                lambda _, drawn=drawn: drawn.counts(RIVER.shape, rounding),
                batch.users,
                sampler=sampler,
                played=batch.policy.played(RIVER.shape, problem.start),
            )
        )
        study.tell(drawn, users=names(study))


def broken(study, change):
    """A batch with one thing wrong, as arguments of `tell`."""
    data, users, token = episodes_of(study, 1), names(study), None
    states, actions, rewards = data.states.copy(), data.actions.copy(), data.rewards.copy()
    if change == "seen":
        users[3] = "user-0"
    elif change == "twice":
        users[3] = users[4]
    elif change == "short":
        data, users = data[:-1], users[:-1]
    elif change == "fewer trajectories":
        data = data[:-1]
    elif change == "state out of range":
        states[2, 4] = 9
        data = Trajectories(states, actions, rewards)
    elif change == "token":
        token = "0" * 32
    elif change == "reports":
        data = np.zeros((len(users), 3), int)
    return data, users, token


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("seen", "has taken part already"),
        ("twice", "has taken part already"),
        ("short", "takes .* users, got"),
        ("fewer trajectories", "trajectories, got"),
        ("state out of range", "Expected states from 0 to 2"),
        ("token", "another batch or under another policy"),
        ("reports", "takes Trajectories"),
    ],
)
def test_refusals_count_nothing(tmp_path, change, sentence):
    path = tmp_path / "study.json"
    study = begin(path)
    advance(study, 0)
    study.ask()
    before = path.read_bytes()
    data, users, token = broken(study, change)
    with pytest.raises(StudyError, match=sentence) as refused:
        study.tell(data, users=users, token=token)
    assert str(refused.value).rstrip(".").endswith(("nothing was counted", "Nothing was counted"))
    assert path.read_bytes() == before
    advance(study, 1)  # the study goes on
    assert study.batches == 2


def strayed(data, how):
    """The same users, the first of whom left the policy."""
    states, actions, rewards = data.states.copy(), data.actions.copy(), data.rewards.copy()
    if how == "foreign start":
        states[0, 0] = 2
    else:
        step = {"first step": 0, "last step": 3}[how]
        actions[0, step] = 1 - actions[0, step]
    return Trajectories(states, actions, rewards)


@pytest.mark.parametrize("how", ["first step", "last step", "foreign start"])
def test_who_leaves_the_policy_has_a_release(tmp_path, how):
    """Every neighbour has one; what is stored does not tell how many left."""
    study = begin(tmp_path / "study.json")
    data, users, seen = strayed(episodes_of(study, 0), how), names(study), []
    assert study.tell(data, users=users, left_out=seen.append) is None
    assert seen == [1]
    assert study.users == len(users)
    advance(study, 1)


def test_a_whole_batch_may_leave_the_policy(tmp_path):
    study = begin(tmp_path / "study.json")
    data, seen = episodes_of(study, 0), []
    away = Trajectories(data.states, 1 - data.actions, data.rewards)
    study.tell(away, users=names(study), left_out=seen.append)
    assert seen == [len(data)]
    advance(study, 1)


def test_the_operator_is_told_only_after_the_batch_is_counted(tmp_path):
    """What the callback says cannot stop the release: it comes too late for that."""
    path = tmp_path / "study.json"
    study = begin(path)

    def stop(count):
        raise RuntimeError(f"{count} left")

    with pytest.raises(RuntimeError, match="1 left"):
        study.tell(strayed(episodes_of(study, 0), "first step"), users=names(study), left_out=stop)
    assert study.batches == discreet.resume(path).batches == 1


def test_the_promise_names_who_may_see_what(tmp_path):
    said = " ".join(begin(tmp_path / "a.json").guarantee.assumptions)
    assert "counts as nothing" in said
    assert "on the screen; it is not stored" in said
    local = begin(tmp_path / "b.json", discreet.Local(1)).guarantee
    assert "operator" not in " ".join(local.assumptions)


def test_rewards_out_of_range_never_become_trajectories():
    with pytest.raises(InvalidInputError):
        Trajectories(np.zeros((1, 5), int), np.zeros((1, 4), int), np.full((1, 4), 1.5))


@pytest.mark.parametrize("kind", ["local", "shuffle"])
def test_encoded_reports(tmp_path, kind):
    trust = discreet.Local(1) if kind == "local" else discreet.Shuffle(epsilon=1, delta=1e-6)
    path = tmp_path / "study.json"
    study = begin(path, trust, episodes=400)
    device = SimulationSampler(np.random.default_rng(3))
    encoder = type(study.encoder()).from_dict(json.loads(json.dumps(study.encoder().to_dict())))
    data, token = episodes_of(study, 0), study.token
    reports = np.concatenate(
        [
            encoder.encode(data.states[i], data.actions[i], data.rewards[i], device)
            for i in range(len(data))
        ]
    )
    if kind == "shuffle":
        reports = shuffle(reports, device)
    with pytest.raises(StudyError, match="never raw trajectories"):
        study.tell(data, users=names(study), token=token)
    with pytest.raises(StudyError, match="pass the token"):
        study.tell(reports, users=names(study))
    with pytest.raises(StudyError, match="Nothing was counted"):
        study.tell(reports[:-1], users=names(study), token=token)
    assert study.batches == 0
    study.tell(reports, users=names(study), token=token)
    assert study.batches == 1
    with pytest.raises(StudyError, match="another batch or under another policy"):
        study.tell(reports, users=names(study), token=token)


def test_a_central_study_has_no_encoder(tmp_path):
    with pytest.raises(UnsupportedError, match="trusted learner"):
        begin(tmp_path / "study.json").encoder()


def test_a_failed_write_leaves_the_study_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "study.json"
    study = begin(path)
    data, users, policy = episodes_of(study, 0), names(study), study.ask().actions
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        study.tell(data, users=users)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert study.batches == 0
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".tmp") == []
    np.testing.assert_array_equal(study.ask().actions, policy)
    study.tell(data, users=users)
    assert discreet.resume(path).batches == 1


def test_two_processes_cannot_both_count(tmp_path):
    path = tmp_path / "study.json"
    one = begin(path)
    one.ask()
    two = discreet.resume(path)
    advance(one, 0)
    with pytest.raises(StudyError, match="changed by another process"):
        advance(two, 1)
    assert discreet.resume(path).users == one.users
    with study_file.locked(path), pytest.raises(StudyError, match="Another process"):
        advance(one, 2)


def everything_in(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), discreet.Local(1)])
def test_reading_writes_nothing(tmp_path, trust):
    path = tmp_path / "study.json"
    study = begin(path, trust)
    before = everything_in(tmp_path)
    for one in (study, discreet.resume(path, study.head)):
        read = (one.batch_size, one.token, one.head, one.batches, one.users, one.finished)
        assert one.ask() is one.ask()
        assert isinstance(str(one.guarantee), str)
        if study.guarantee.notion == "LDP":
            one.encoder()
        assert read == (
            study.batch_size,
            study.token,
            study.head,
            study.batches,
            study.users,
            False,
        )
    assert everything_in(tmp_path) == before


def test_an_older_copy_is_refused_when_the_head_is_known(tmp_path):
    path, old, heads = tmp_path / "study.json", tmp_path / "old.json", []
    study = begin(path)
    for batch in range(3):
        heads.append(study.head)
        old.write_bytes(path.read_bytes())
        advance(study, batch)
    heads.append(study.head)
    assert len(set(heads)) == 4
    with pytest.raises(StudyError, match="is an older copy or another study") as refused:
        discreet.resume(old, head=study.head)
    assert str(refused.value).count(". ") == 0  # one sentence
    assert discreet.resume(old, head=heads[2]).batches == 2
    for head in heads:  # a file that has gone on since is no older copy
        assert discreet.resume(path, head=head).head == study.head
    other = begin(tmp_path / "other.json")
    with pytest.raises(StudyError, match="another study"):
        discreet.resume(path, head=other.head)


def test_a_running_study_notices_an_older_file_in_its_place(tmp_path):
    path = tmp_path / "study.json"
    study = begin(path)
    old = path.read_bytes()
    advance(study, 0)
    path.write_bytes(old)
    with pytest.raises(StudyError, match="changed by another process"):
        advance(study, 1)
    assert path.read_bytes() == old
    path.unlink()
    with pytest.raises(StudyError, match="There is no study"):
        advance(study, 1)


def other_leaf(value):
    """The same plain value with one leaf changed."""
    if isinstance(value, dict):
        first = next(iter(value))
        return {**value, first: other_leaf(value[first])}
    if isinstance(value, list):
        return [other_leaf(value[0]), *value[1:]] if value else [0]
    return value + 1 if isinstance(value, int | float) else f"{value}0"


EDITS = {
    "epsilon": lambda file: file["config"]["trust"].update(epsilon=9.0),
    "states": lambda file: file["config"]["shape"].update(states=99),
    "forgotten user": lambda file: file["users"].pop(),
    "added user": lambda file: file["users"].append("0" * 32),
    "other user": lambda file: file["users"].__setitem__(0, "0" * 32),
    "users moved": lambda file: file["users"].reverse(),
    "forgotten batch": lambda file: file["told"].pop(),
    "no batch": lambda file: file.update(told=[], users=[]),
    "broken batch": lambda file: file["told"][0].pop("users"),
    "other rows": lambda file: file["told"].__setitem__(0, None),
    "evidence": lambda file: file.update(learner=other_leaf(file["learner"])),
    "noise": lambda file: file.update(streams=other_leaf(file["streams"])),
    "promise": lambda file: file.update(guarantee="perfect"),
    "something more": lambda file: file.update(note="checked"),
    "head": lambda file: file.update(head="0" * 64),
    "no head": lambda file: file.pop("head"),
    "key": lambda file: file.update(key="0" * 64),
}


@pytest.fixture(scope="module")
def two_batches(tmp_path_factory):
    path = tmp_path_factory.mktemp("edited") / "study.json"
    study = begin(path)
    advance(study, 0)
    advance(study, 1)
    return path.read_text()


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_is_noticed(tmp_path, two_batches, edit):
    path, content = tmp_path / "study.json", json.loads(two_batches)
    EDITS[edit](content)
    path.write_text(json.dumps(content))
    with pytest.raises(StudyError, match="was edited or damaged"):
        discreet.resume(path)
    path.write_text(two_batches)
    assert discreet.resume(path).batches == 2


COMPOSED, TAKEN_APART = "Zo\u00eb", "Zoe\u0308"
SPELLINGS = [f" {COMPOSED}", f"{COMPOSED}\t", TAKEN_APART, f"{TAKEN_APART}\n"]


@pytest.mark.parametrize(
    "again", [f" {COMPOSED}", f"{COMPOSED}\t", TAKEN_APART, f"{TAKEN_APART}\n"]
)
def test_one_person_has_one_name(tmp_path, again):
    path = tmp_path / "study.json"
    study = begin(path)
    study.tell(episodes_of(study, 0), users=[COMPOSED, *names(study)[1:]])
    advance(study, 1)  # not only the last batch is remembered
    study = discreet.resume(path, study.head)
    with pytest.raises(StudyError, match="has taken part already"):
        study.tell(episodes_of(study, 2), users=[again, *names(study)[1:]])


def test_users_are_remembered_for_ever(tmp_path):
    path = tmp_path / "study.json"
    study = begin(path)
    everybody = []
    for batch in range(4):
        everybody.append(names(study)[0])
        advance(study, batch)
        study = discreet.resume(path, study.head)
    for user in everybody:
        with pytest.raises(StudyError, match="has taken part already"):
            study.tell(episodes_of(study, 9), users=[user, *names(study)[1:]])


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        (None, "text or by integers, got None"),
        (True, "text or by integers"),
        (float("nan"), "text or by integers, got nan"),
        (b"u", "text or by integers"),
        ("", "which is empty"),
        (" \t", "which is empty"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_what_is_no_name(tmp_path, user, sentence):
    study = begin(tmp_path / "study.json")
    with pytest.raises(StudyError, match=sentence) as refused:
        study.tell(episodes_of(study, 0), users=[user, *names(study)[1:]])
    assert str(refused.value).isprintable()
    assert study.users == 0
    study.tell(episodes_of(study, 0), users=[np.int64(7), *names(study)[1:]])


def test_a_rehearsal_says_so(tmp_path):
    path = tmp_path / "study.json"
    study = begin(path)
    assert str(study.guarantee).startswith("SIMULATED, protects nobody: (1, ")
    assert json.loads(path.read_text())["guarantee"] == str(study.guarantee)
    assert f"{study.guarantee}" == str(study.guarantee)
    plain = begin(tmp_path / "none.json", discreet.NoPrivacy())
    assert str(plain.guarantee) == "no privacy"


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"format": "other"}'])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "study.json"
    path.write_text(content)
    with pytest.raises(StudyError, match="is not a study file"):
        discreet.resume(path)
    with pytest.raises(StudyError, match="exists"):
        begin(path)
    with pytest.raises(StudyError, match="There is no study"):
        discreet.resume(tmp_path / "none.json")


WORKER = """
import os, signal, sys
import gymnasium, numpy as np
import discreet
from discreet.study import study_file
from discreet.mdp.trajectories import Trajectories

path, kill_during = sys.argv[1], int(sys.argv[2])
env = gymnasium.make("discreet/RiverSwim-v0", states=3, horizon=4)
study = discreet.resume(path)
write = study_file.write

def deadly(where, content):
    if len(content["told"]) == kill_during + 1:
        os.kill(os.getpid(), signal.SIGKILL)
    write(where, content)

study_file.write = deadly

def episode(policy, seed):
    states, actions, rewards = [env.reset(seed=seed)[0]], [], []
    for h in range(4):
        actions.append(int(policy.actions[h, states[-1]]))
        state, reward, *_ = env.step(actions[-1])
        states.append(state), rewards.append(reward)
    return states, actions, rewards

while study.batches < 20:
    first = study.users
    rows = [episode(study.ask(), first + i) for i in range(study.batch_size)]
    data = Trajectories(*(np.array(part) for part in zip(*rows)))
    study.tell(data, users=range(first, first + study.batch_size))
    print(study.batches, flush=True)
    if study.batches == 3 and kill_during == 9:
        os.kill(os.getpid(), signal.SIGKILL)  # between two calls of tell
"""


def test_survives_being_killed(tmp_path):
    """20 batches from a Gymnasium environment, killed between and during `tell`, lose nothing."""
    worker = tmp_path / "worker.py"
    worker.write_text(textwrap.dedent(WORKER))
    finals = []
    for name, kills in (("whole.json", [99]), ("killed.json", [9, 9, 15, 99])):
        path = tmp_path / name
        begin(path, episodes=100_000)
        for kill in kills:
            done = subprocess.run(
                [sys.executable, str(worker), str(path), str(kill)],
                capture_output=True,
                text=True,
                check=False,
                env=os.environ,
            )
            expected = 0 if kill == 99 else -signal.SIGKILL
            assert done.returncode == expected, done.stderr
        study = discreet.resume(path)
        assert study.batches == 20
        finals.append((study.users, study.ask().actions.tolist(), study.batch_size))
    assert finals[0] == finals[1]  # nothing lost, nothing counted twice
