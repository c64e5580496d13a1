"""Reports from files: bytes of devices, arrays, and what neither is."""

import numpy as np
import pytest

import discreet
from discreet.errors import StudyError
from discreet.study.files import read_names
from helpers.studies import begin, episodes_of


def bytes_of(study, users=3):
    phone = discreet.device.load(study.encoder().to_dict())
    data = episodes_of(study, 0, users)
    plain = [
        {name: getattr(data, name)[i].tolist() for name in ("states", "actions", "rewards")}
        for i in range(users)
    ]
    return [phone.to_bytes(phone.encode(episode)) for episode in plain]


@pytest.fixture(scope="module", params=["shuffle", "local", "flipped"])
def study(request, tmp_path_factory):
    trusts = {
        "shuffle": discreet.Shuffle(2, 1e-6),
        "local": discreet.Local(1),
        "flipped": discreet.Local(1, mechanism="randomized-response"),
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
    study = begin(tmp_path / "s.db", discreet.Local(1, mechanism="laplace"))
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
