"""Files of a study: policies with names and guarantee, reports of devices, and what neither is."""

import csv
import json

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError
from discreet.mdp.policies import DeterministicPolicy, MixturePolicy, StochasticPolicy
from discreet.privacy.guarantee import REHEARSED
from discreet.study.files import how, read_names, request_rows, rows_of
from helpers.studies import advance, begin, episodes_of


def test_names_of_states_actions_and_steps(tmp_path):
    study = begin(
        tmp_path / "study.db",
        states=["ill", "better", "well"],
        actions=["wait", "treat"],
        horizon=["spring", "summer", "autumn", "winter"],
        start_states=["ill"],
    )
    assert study.problem.start.tolist() == [True, False, False]
    assert study.names.actions == ("wait", "treat")
    advance(study)
    again = discreet.open_study(study.path)
    assert again.names == study.names
    again.save_policy(tmp_path / "policy.json")
    again.save_policy(tmp_path / "policy.csv")
    saved = json.loads((tmp_path / "policy.json").read_text())
    with (tmp_path / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(saved["policy"]) == 12
    assert (rows[4]["step"], rows[4]["state"]) == ("summer", "better")
    for row, plain in zip(rows, saved["policy"], strict=True):
        told = {k: "" if v is None else str(v) for k, v in plain.items()}
        assert told == {k: row[k] for k in plain}
        h, s = (
            study.names.steps.index(row["step"]),
            study.names.states.index(row["state"]),
        )
        assert row["action"] == study.names.actions[study.policy.actions[h, s]]


def test_every_recommendation_carries_its_evidence(tmp_path):
    study = begin(tmp_path / "study.db", discreet.NoPrivacy(), learner="trial", aim="policy",
                  episodes=2_000)  # fmt: skip
    before = rows_of(study.answer, study.names)
    assert all(row["defer"] and row["standard_error"] is None for row in before)
    advance(study)
    found, rows = study.answer, rows_of(study.answer, study.names)
    assert [row["defer"] for row in rows] == found.defer.ravel().tolist()
    assert {True, False} == {row["defer"] for row in rows}
    for row in rows:
        if row["defer"]:
            assert row["action"] == study.names.actions[0]
        else:
            assert row["action"] == row["alternative"] != study.names.actions[0]
            assert row["difference"] > 2 * row["standard_error"] > 0


def test_a_rehearsal_says_so_in_every_table(tmp_path):
    study = begin(tmp_path / "study.db")
    advance(study)
    for name in ("policy.json", "policy.csv"):
        study.save_policy(tmp_path / name)
    rows = (tmp_path / "policy.csv").read_text().splitlines()[1:]
    assert all(REHEARSED in row for row in rows)
    saved = json.loads((tmp_path / "policy.json").read_text())
    assert saved["simulated"] and REHEARSED in saved["guarantee"]
    assert saved["head"] == study.head
    assert all(REHEARSED in entry["guarantee"] for entry in study.ledger)


def test_a_policy_is_saved_where_one_can_write(tmp_path):
    study = begin(tmp_path / "study.db")
    with pytest.raises(StudyError, match=r"ends in \.json or \.csv"):
        study.save_policy(tmp_path / "policy.xlsx")
    with pytest.raises(StudyError, match="Cannot write"):
        study.save_policy(tmp_path / "missing" / "policy.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]


def test_questions_of_every_kind_of_policy():
    names = discreet.data.Vocabulary(states=["a", "b"], actions=["x", "y"], steps=1)
    plain = DeterministicPolicy([[0, 1]])
    drawn = StochasticPolicy([[[0.5, 0.5], [1.0, 0.0]]])
    assert request_rows(plain, names) == [
        {"step": "0", "state": "a", "action": "x", "probability": 1.0},
        {"step": "0", "state": "b", "action": "y", "probability": 1.0},
    ]
    assert [(r["state"], r["action"], r["probability"]) for r in request_rows(drawn, names)] == [
        ("a", "x", 0.5),
        ("a", "y", 0.5),
        ("b", "x", 1.0),
    ]
    mixed = MixturePolicy((plain, drawn, plain), [0.25, 0.75, 0.0])
    rows = request_rows(mixed, names)
    assert [row["component"] for row in rows] == [0, 0, 1, 1, 1]
    assert rows[0]["weight"] == 0.25
    assert "before the first step" in how(mixed)


def test_a_question_as_a_file(tmp_path):
    study = begin(tmp_path / "study.db")
    study.save_request(tmp_path / "question.json")
    saved = json.loads((tmp_path / "question.json").read_text())
    assert saved["format"] == "discreet-batch-request-1"
    assert (saved["users"], saved["token"]) == (study.batch_size, study.token)
    assert saved["guarantee"].startswith(REHEARSED)
    assert len(saved["policy"]) == 12
    with pytest.raises(StudyError, match=r"ends in \.json or \.csv"):
        study.save_request(tmp_path / "question")


def bytes_of(study, users=3):
    phone = discreet.device.load(study.encoder().to_dict())
    data = episodes_of(study, 0, users)
    plain = [
        {name: getattr(data, name)[i].tolist() for name in ("states", "actions", "rewards")}
        for i in range(users)
    ]
    return [phone.to_bytes(phone.encode(episode)) for episode in plain]


@pytest.fixture(scope="module", params=["shuffle", "local"])
def study(request, tmp_path_factory):
    trusts = {
        "shuffle": discreet.Shuffle(2, 1e-6),
        "local": discreet.Local(1),
    }
    return begin(tmp_path_factory.mktemp(request.param) / "s.db", trusts[request.param])


def test_a_folder_and_a_file_are_the_same_reports(study, tmp_path):
    sent = bytes_of(study)
    folder = tmp_path / "reports"
    folder.mkdir()
    for i, data in enumerate(sent):
        (folder / f"{i}.report").write_bytes(data)
    (folder / ".hidden").write_bytes(b"no report")
    (tmp_path / "all.bin").write_bytes(b"".join(sent))
    expected = np.concatenate([study.encoder().from_bytes(data) for data in sent])
    assert np.array_equal(study.read_reports(folder), expected)
    assert np.array_equal(study.read_reports(tmp_path / "all.bin"), expected)
    np.save(tmp_path / "all.npy", expected)
    assert np.array_equal(study.read_reports(tmp_path / "all.npy"), expected)


def test_what_is_refused(study, tmp_path):
    sent = bytes_of(study, 1)[0]
    (tmp_path / "half.bin").write_bytes(sent[:-1])
    (tmp_path / "other.bin").write_bytes(sent[:10] + bytes([sent[10] ^ 1]) + sent[11:])
    (tmp_path / "text.npy").write_text("1, 2")
    np.save(tmp_path / "float.npy", np.zeros(3))
    (tmp_path / "empty").mkdir()
    cases = {
        "half.bin": "Expected reports of",
        "other.bin": "'report 0' is refused: .* made for this batch",
        "text.npy": "an array of integers",
        "float.npy": "an array of integers",
        "empty": "There are no reports",
        "missing": "No such file",
    }
    for name, said in cases.items():
        with pytest.raises(StudyError, match=said) as caught:
            study.read_reports(tmp_path / name)
        assert "othing was counted" in str(caught.value)


def test_mechanisms_without_bytes_take_arrays(tmp_path):
    study = begin(tmp_path / "s.db", discreet.Shuffle(2, 1e-6, mechanism="bits"))
    (tmp_path / "reports.bin").write_bytes(b"x")
    with pytest.raises(StudyError, match="no form as bytes; give them as an array"):
        study.read_reports(tmp_path / "reports.bin")


def test_names(tmp_path):
    (tmp_path / "users.txt").write_bytes("\ufeffann\r\n\n Zoë \n".encode())
    assert read_names(tmp_path / "users.txt") == ["ann", " Zoë "]
    (tmp_path / "users.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="one name per line in UTF-8"):
        read_names(tmp_path / "users.txt")
    with pytest.raises(StudyError, match="No such file"):
        read_names(tmp_path / "none.txt")
