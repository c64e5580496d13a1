"""Ask and tell: refusals count nothing, and a study equals `learn`."""

import hashlib
import json

import numpy as np
import pytest

import discreet
from discreet._seeds import RunSeeds
from discreet.errors import InvalidInputError, MissingExtraError, StudyError, UnsupportedError
from discreet.learners.learn import make_batch_learner, public_facts
from discreet.learners.registry import get_learner
from discreet.mdp import make
from discreet.mdp.simulation import sample_trajectories
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.sampling import samplers
from discreet.privacy.sampling.samplers import SimulationSampler
from discreet.study import store
from helpers.studies import (
    RIVER,
    advance,
    begin,
    episodes_of,
    everything_in,
    names,
    reports_of,
    sql,
)


def test_a_whole_study_and_its_guarantee(tmp_path):
    study = begin(tmp_path / "study.db", episodes=300)
    while not study.finished:
        advance(study, study.batches)
    assert study.users == 300
    assert study.guarantee.notion == "JDP"
    assert study.guarantee.epsilon == 1
    assert study.guarantee.simulated
    with pytest.raises(StudyError, match="has counted all its 300 users"):
        study.ask()


def test_a_study_says_how_many_take_part_as_people_write_it(tmp_path):
    study = begin(tmp_path / "study.db", episodes=3_000)
    assert "0 of 3,000 users in 0 batches, next batch " in str(study)
    advance(study, 0)
    assert f"{study.users:,} of 3,000 users in 1 batch, next batch " in str(study)


def test_secure_is_the_default_and_cannot_be_seeded(tmp_path):
    with pytest.raises(StudyError, match="cannot be seeded"):
        begin(tmp_path / "a.db", sampler="secure")
    study = begin(tmp_path / "b.db", sampler="secure", seed=None)
    assert not study.guarantee.simulated
    assert "SIMULATED" not in str(study.guarantee)
    advance(study, 0)
    assert study.batches == 1
    ((config,),) = sql(tmp_path / "b.db", "SELECT config FROM config")
    assert json.loads(config)["sampler"] == "secure"


def test_a_broken_installation_is_noticed_before_anybody_is_asked(tmp_path, monkeypatch):
    def missing():
        raise MissingExtraError("opendp")

    monkeypatch.setattr(samplers, "_opendp", missing)
    with pytest.raises(MissingExtraError, match="opendp"):
        begin(tmp_path / "study.db", sampler="secure", seed=None)
    assert list(tmp_path.iterdir()) == []


def test_secure_noise_does_not_follow_from_the_file(tmp_path):
    """Copies of a secure study, told the same, draw different noise; those of a rehearsal agree."""
    for sampler, seed in (("secure", None), ("simulation", 5)):
        path, copy = tmp_path / f"{sampler}.db", tmp_path / f"{sampler}-copy.db"
        study = begin(path, sampler=sampler, seed=seed)
        copy.write_bytes(path.read_bytes())
        told = []
        for one in (study, discreet.open_study(copy)):
            one.tell(episodes_of(one, 0), users=names(one))
            told.append(sql(one.path, "SELECT * FROM evidence WHERE name LIKE 'driver.%'"))
        assert (told[0] == told[1]) == (sampler == "simulation")


def test_the_file_holds_no_names_and_says_what_happened(tmp_path):
    path = tmp_path / "study.db"
    study = begin(path)
    advance(study, 0)
    assert b"user-0" not in path.read_bytes()
    first, batch = study.ledger
    facts = {"number", "kind", "previous", "guarantee", "state", "software"}
    assert set(first) == facts | {"config", "key"}
    assert set(batch) == facts | {"batch", "users", "asked", "policy", "names", "recommends"}
    digest = hashlib.blake2b(study.policy.key, digest_size=16).hexdigest()
    assert batch["recommends"] == digest
    assert (batch["users"], batch["asked"], batch["batch"]) == (study.users, study.users, 0)
    assert batch["guarantee"] == str(study.guarantee)
    assert {"discreet", "numpy", "python", "sqlite", "opendp"} == set(batch["software"])


def test_a_note_stands_in_the_ledger_under_its_hash(tmp_path):
    study = begin(tmp_path / "study.db")
    study.tell(episodes_of(study, 1), users=names(study), note={"manifest": "ab12"})
    advance(study, 2)
    notes = [entry.get("note") for entry in discreet.open_study(tmp_path / "study.db").ledger]
    assert notes == [None, {"manifest": "ab12"}, None]
    sql(tmp_path / "study.db", "UPDATE ledger SET entry = replace(entry, 'ab12', 'ab13')")
    with pytest.raises(StudyError):
        discreet.open_study(tmp_path / "study.db")


def test_resumes_with_the_same_question(tmp_path):
    path = tmp_path / "study.db"
    study = begin(path)
    for seed in range(3):
        advance(study, seed)
    again = discreet.open_study(path)
    np.testing.assert_array_equal(again.ask().actions, study.ask().actions)
    assert (again.batch_size, again.token, again.users) == (
        study.batch_size,
        study.token,
        study.users,
    )
    advance(study, 7)
    copy = discreet.open_study(path)
    np.testing.assert_array_equal(copy.ask().actions, study.ask().actions)


def test_equals_the_simulated_path(tmp_path):
    """The same draws through `learn`'s parts and through a study give the same policies."""
    study = begin(tmp_path / "study.db")
    problem = public_facts(RIVER, 2_000)
    seeds = RunSeeds(5)
    trust = discreet.Central(epsilon=1, delta=1e-6)
    learner = make_batch_learner(
        get_learner("flow-ucb"), problem, trust, seeds.generator("policy"), {"mixing": False}
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
            learner.mechanism.simulate(
                lambda _, drawn=drawn: drawn.counts(RIVER.shape, rounding),
                batch.users,
                sampler=sampler,
                support=batch.policy.support(RIVER.shape, problem.start),
            )
        )
        study.tell(drawn, users=names(study))


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
    study = begin(tmp_path / "study.db")
    data, users, seen = strayed(episodes_of(study, 0), how), names(study), []
    assert study.tell(data, users=users, dropped_out=seen.append) is None
    assert seen == [1]
    assert study.users == len(users)
    advance(study, 1)


def test_who_left_counts_up_to_that_step_and_not_after_it(tmp_path):
    study = begin(tmp_path / "study.db", discreet.NoPrivacy())
    data, policy = episodes_of(study, 0, 40), study.ask()
    actions = data.actions.copy()
    for user in range(30):
        actions[user, user % 4] = 1 - actions[user, user % 4]
    stray = Trajectories(data.states, actions, data.rewards)
    expected = np.zeros((4, 3, 2))
    for user in range(40):
        for step in range(4):
            state, action = data.states[user, step], actions[user, step]
            if action != policy.actions[step, state]:
                break
            expected[step, state, action] += 1
    np.testing.assert_array_equal(study._release(stray, 40).visits, expected)


def test_a_whole_batch_may_leave_the_policy(tmp_path):
    study = begin(tmp_path / "study.db")
    data, seen = episodes_of(study, 0), []
    away = Trajectories(data.states, 1 - data.actions, data.rewards)
    study.tell(away, users=names(study), dropped_out=seen.append)
    assert seen == [len(data)]
    advance(study, 1)


def test_the_operator_is_told_only_after_the_batch_is_counted(tmp_path):
    """What the callback says cannot stop the release: it comes too late for that."""
    path = tmp_path / "study.db"
    study = begin(path)

    def stop(count):
        raise RuntimeError(f"{count} left")

    with pytest.raises(RuntimeError, match="1 left"):
        study.tell(
            strayed(episodes_of(study, 0), "first step"), users=names(study), dropped_out=stop
        )
    assert study.batches == discreet.open_study(path).batches == 1


def test_the_guarantee_names_who_may_see_what(tmp_path):
    said = " ".join(begin(tmp_path / "a.db").guarantee.assumptions)
    assert "up to the step at which it leaves the policy" in said
    assert "how many people left a policy; the number is not stored" in said
    local = begin(tmp_path / "b.db", discreet.Local(1)).guarantee
    assert "operator" not in " ".join(local.assumptions)


def test_rewards_out_of_range_never_become_trajectories():
    with pytest.raises(InvalidInputError):
        Trajectories(np.zeros((1, 5), int), np.zeros((1, 4), int), np.full((1, 4), 1.5))


@pytest.mark.parametrize("kind", ["local", "shuffle"])
def test_encoded_reports(tmp_path, kind):
    trust = discreet.Local(1) if kind == "local" else discreet.Shuffle(epsilon=1, delta=1e-6)
    study = begin(tmp_path / "study.db", trust, episodes=400)
    encoder = json.loads(json.dumps(study.encoder().to_dict()))
    assert type(study.encoder()).from_dict(encoder).to_dict() == study.encoder().to_dict()
    data, token = episodes_of(study, 0), study.token
    reports = reports_of(study, data)
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
    with pytest.raises(UnsupportedError, match="has no encoder"):
        begin(tmp_path / "study.db").encoder()


def test_a_full_disk_leaves_the_study_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    study = begin(path, discreet.Central(0.02, 1e-6), episodes=10_000)  # its batches need room
    data, users, policy = episodes_of(study, 0), names(study), study.ask().actions
    before = path.read_bytes()
    pages = len(before) // 4096
    monkeypatch.setattr(store, "_PRAGMAS", (*store._PRAGMAS, f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StudyError, match=r"disk is full; nothing was counted\. Make room"):
        study.tell(data, users=users)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert (study.batches, study.head) == (0, discreet.open_study(path).head)
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]
    np.testing.assert_array_equal(study.ask().actions, policy)
    study.tell(data, users=users)
    assert discreet.open_study(path).batches == 1


def test_two_processes_cannot_both_count_one_batch(tmp_path):
    path = tmp_path / "study.db"
    one = begin(path)
    two = discreet.open_study(path)
    advance(one, 0)
    with pytest.raises(StudyError, match="changed by another process; refresh"):
        advance(two, 1)
    two.refresh()
    assert (two.head, two.users) == (one.head, one.users)
    with pytest.raises(StudyError, match="has taken part already"):
        two.tell(episodes_of(two, 1), users=["user-0", *names(two)[1:]])
    advance(two, 1)
    assert discreet.open_study(path).users == two.users


def test_who_waits_too_long_is_told_so(tmp_path, monkeypatch):
    study = begin(tmp_path / "study.db")
    other = store.Store(study.path)
    monkeypatch.setattr(store, "PATIENCE", 0.01)
    with other.changing(study._tail), pytest.raises(StudyError, match="Another process is working"):
        advance(study)
    advance(study)
    assert study.batches == 1


@pytest.mark.parametrize("trust", [discreet.Central(1, 1e-6), discreet.Local(1)])
def test_reading_writes_nothing(tmp_path, trust):
    path = tmp_path / "study.db"
    study = begin(path, trust)
    before = everything_in(tmp_path)
    for one in (study, discreet.open_study(path, study.head)):
        read = (one.batch_size, one.token, one.head, one.batches, one.users, one.finished)
        assert one.ask().key == study.ask().key
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
    path, old, heads = tmp_path / "study.db", tmp_path / "old.db", []
    study = begin(path)
    for batch in range(3):
        heads.append(study.head)
        old.write_bytes(path.read_bytes())
        advance(study, batch)
    heads.append(study.head)
    assert len(set(heads)) == 4
    with pytest.raises(StudyError, match="is an older copy or another study") as refused:
        discreet.open_study(old, head=study.head)
    assert str(refused.value).count(". ") == 0  # one sentence
    assert discreet.open_study(old, head=heads[2]).batches == 2
    for head in heads:  # a file that has gone on since is no older copy
        assert discreet.open_study(path, head=head).head == study.head
    other = begin(tmp_path / "other.db")
    with pytest.raises(StudyError, match="another study"):
        discreet.open_study(path, head=other.head)


def test_a_running_study_notices_an_older_file_in_its_place(tmp_path):
    path = tmp_path / "study.db"
    study = begin(path)
    old = path.read_bytes()
    advance(study, 0)
    path.write_bytes(old)
    with pytest.raises(StudyError, match="an older copy or another study is in its place"):
        advance(study, 1)
    assert path.read_bytes() == old
    path.unlink()
    with pytest.raises(StudyError, match="There is no study"):
        advance(study, 1)


def test_no_digest_that_anybody_can_guess_is_on_the_disk(tmp_path):
    """Nor the name itself, in any writing."""
    study = begin(tmp_path / "study.db")
    study.tell(episodes_of(study, 0), users=["Marker-93751", *names(study)[1:]])
    name = b"Marker-93751"
    found = [hashlib.new(kind, name).digest() for kind in ("md5", "sha1", "sha256")]
    found += [hashlib.blake2b(name, digest_size=n).digest() for n in (16, 32, 64)]
    found += [form.hex().encode() for form in (*found, name)]
    found += [name.decode().encode("utf-16-le")]
    for path in tmp_path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(
            form in content for form in (*found, name, name.decode().encode("utf-16-le"))
        )


COMPOSED, TAKEN_APART = "Zo\u00eb", "Zoe\u0308"


@pytest.mark.parametrize(
    "again", [f" {COMPOSED}", f"{COMPOSED}\t", TAKEN_APART, f"{TAKEN_APART}\n"]
)
def test_one_person_has_one_name(tmp_path, again):
    path = tmp_path / "study.db"
    study = begin(path)
    study.tell(episodes_of(study, 0), users=[COMPOSED, *names(study)[1:]])
    advance(study, 1)  # not only the last batch is remembered
    study = discreet.open_study(path, study.head)
    with pytest.raises(StudyError, match="has taken part already"):
        study.tell(episodes_of(study, 2), users=[again, *names(study)[1:]])


def test_users_are_remembered_for_ever(tmp_path):
    path = tmp_path / "study.db"
    study = begin(path)
    everybody = []
    for batch in range(4):
        everybody.append(names(study)[0])
        advance(study, batch)
        study = discreet.open_study(path, study.head)
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
        ("", "it is empty"),
        (" \t", "it is empty"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_what_is_no_name(tmp_path, user, sentence):
    study = begin(tmp_path / "study.db")
    with pytest.raises(StudyError, match=sentence) as refused:
        study.tell(episodes_of(study, 0), users=[user, *names(study)[1:]])
    assert str(refused.value).isprintable()
    assert study.users == 0
    study.tell(episodes_of(study, 0), users=[np.int64(7), *names(study)[1:]])


def test_a_rehearsal_says_so(tmp_path):
    path = tmp_path / "study.db"
    study = begin(path)
    assert str(study.guarantee).startswith("SIMULATED, protects nobody: (1, ")
    assert b"SIMULATED, protects nobody" in path.read_bytes()
    assert f"{study.guarantee}" == str(study.guarantee)
    assert "SIMULATED, protects nobody" in str(study)
    plain = begin(tmp_path / "none.db", discreet.NoPrivacy())
    assert str(plain.guarantee) == "no privacy"


@pytest.mark.parametrize("learner", ["flow-ucb", "explore-then-commit", "trial"])
@pytest.mark.parametrize("stationary", [True, False])
def test_a_declared_stationarity_that_counts_contradict_is_said(tmp_path, learner, stationary):
    mdp = make("RandomMDP", states=3, actions=2, horizon=4, seed=3, stationary=stationary)
    study = begin(
        tmp_path / "study.db",
        learner=learner,
        episodes=40_000,
        stationary=True,
        **({"batches": 3} if learner == "flow-ucb" else {}),
        start_states=np.nonzero(mdp.initial)[0].tolist(),
    )
    assert study.notes == ()
    while not study.finished:
        rng = np.random.default_rng(study.batches)
        episodes = sample_trajectories(mdp, study.ask(), study.batch_size, rng)
        study.tell(episodes, users=names(study))
    assert study.notes == discreet.open_study(study.path).notes
    said = "stationary=True was declared, and the counts contradict it"
    assert [said in note for note in study.notes] == [True] * (not stationary)
    assert (said in str(study)) == (not stationary)
