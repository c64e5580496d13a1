"""What thieves of copies, backups, leftovers of crashes and keys learn of a central stream study.

The attack, with a copy *and* the key: a node as it is released less what the copy shows of it. The
two must differ by one full draw of the calibrated noise, whoever was told in between.
"""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.auditing.attack import epsilon_low
from discreet.errors import StudyError
from discreet.mdp.trajectories import Trajectories
from discreet.privacy.statistics import flatten
from discreet.study.config import COPIES, CRASH
from helpers.studies import advance, begin, episodes_of, names

pytest.importorskip("opendp")
pytest.importorskip("cryptography")

EPSILON, DELTA = 1.0, 1e-6


def secure(path, episodes=2_000, **changes):
    trust = discreet.Central(EPSILON, DELTA, mechanism="tree-gaussian")
    given = {"learner": "dp-ucbvi", "episodes": episodes, "sampler": "secure", "seed": None}
    given["stationary"] = True  # fewer counters: secure noise is slow
    return begin(path, trust, **(given | changes))


def copy_of(study, folder, key=True):
    """Another study that goes on from a copy of the file (and of the key)."""
    folder.mkdir()
    where = Path(shutil.copyfile(study.path, folder / study.path.name))
    if key:
        shutil.copyfile(study.key_file, folder / study.key_file.name)
    return discreet.resume(where)


def nodes(study):
    return study.driver.running


def vector(study, data):
    plan = study.mechanism
    counts = data.counts(plan.shape, np.random.default_rng(0))
    return flatten(counts, plan.statistics, stationary=plan.stationary)


def crashed(study, folder):
    """A folder as a process leaves it that is killed after a tell: file, log and key."""
    folder.mkdir()
    for part in (study.path, study.key_file):
        shutil.copyfile(part, folder / part.name)
    program = f"""
import os, sqlite3, sys
import numpy as np
import discreet
from discreet.mdp import make, sample_trajectories
world = make("RiverSwim", states=3, horizon=4, relabel=1)
study = discreet.resume({str(folder / study.path.name)!r})
reader = sqlite3.connect(study.path, isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM ledger").fetchone()  # the log cannot be emptied
data = sample_trajectories(world, study.ask(), 1, np.random.default_rng(7))
study.tell(data, users=["killed"])
print("told", flush=True)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "told\n"), ended.stderr
    return folder / study.path.name


@pytest.mark.parametrize("people", [0, 1_500])
def test_one_more_user_in_the_original_and_in_a_copy_meets_different_noise(tmp_path, people):
    """Exact distribution: the branches differ by two calibrated draws on the node that closes."""
    study = secure(tmp_path / "study.db")
    if people:
        advance(study, 1, users=people)
    thief = nodes(copy_of(study, tmp_path / "thief")).open[0].copy()
    victim, sigma = episodes_of(study, 2, 1), nodes(study)._noise.distribution.sigma
    others = []
    for branch in range(8):
        other = copy_of(study, tmp_path / str(branch))
        other.tell(victim, users=["victim"])
        others.append(nodes(other).closed[0])
    study.tell(victim, users=["victim"])
    released, exact = nodes(study).closed[0], vector(study, victim)
    residuals = np.concatenate([closed - thief - exact for closed in (released, *others)])
    differences = np.concatenate([others[i] - others[i + 1] for i in range(0, 8, 2)])
    # 9 x 30 and 4 x 30 draws; sigma is some hundreds, so that rounding does not show.
    for sample, scale in ((residuals, sigma), (differences, sigma * np.sqrt(2))):
        assert stats.kstest(sample / scale, "norm").pvalue > 1e-6
        low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], sample.size) / sample.size
        assert low < np.mean((sample / scale) ** 2) < high
    assert not (others[0] == released).all()


def test_epsilon_allows_what_two_hundred_attacks_achieve(tmp_path):
    """A thief with an empty copy and its key guesses which of two opposite episodes was counted."""
    study = secure(tmp_path / "study.db", episodes=2)
    thief = nodes(study).open[0].copy()
    ends = ((0, 0, 0.0), (2, 1, 1.0))
    left, right = (
        Trajectories(np.full((1, 5), state), np.full((1, 4), action), np.full((1, 4), reward))
        for state, action, reward in ends
    )
    seen = {0: [], 1: []}
    empty = study.path.read_bytes()
    for _ in range(200):
        for side, episode in enumerate((left, right)):
            study.path.write_bytes(empty)
            other = discreet.resume(study.path)
            other.tell(episode, users=["victim"])
            seen[side].append(nodes(other).closed[0] - thief)
    gap = vector(study, left) - vector(study, right)
    scores = [(np.array(seen[side]) @ gap)[:, None].astype(float) for side in (0, 1)]
    assert epsilon_low(*scores, DELTA) <= EPSILON
    # The same test convicts a node with its first draw alone: less the copy, it is exact.
    exact = [
        np.full((200, 1), float(vector(study, one) @ gap)) + 1e-6 * np.arange(200)[:, None]
        for one in (left, right)
    ]
    assert epsilon_low(*exact, DELTA) > EPSILON


def test_what_a_kill_leaves_beside_the_file_takes_no_noise_away(tmp_path):
    study = secure(tmp_path / "study.db")
    advance(study, 1, users=63)
    before = nodes(copy_of(study, tmp_path / "before")).open.copy()
    where = crashed(study, tmp_path / "killed")
    left = {p.name: p.read_bytes() for p in where.parent.iterdir()}
    assert len(left[f"{where.name}-wal"]) > 4_096
    again = discreet.resume(where)
    assert again.users == 64  # it was committed, in the log
    exact = vector(study, episodes_of(study, 7, 1))
    closing = [level for level in range(nodes(again)._noise.levels) if 64 % (1 << level) == 0]
    noise = nodes(again).closed[closing] - before[closing] - exact
    assert (np.abs(noise).mean(axis=1) > nodes(again)._noise.distribution.sigma / 2).all()
    # Without the key neither file nor log shows an open node, as it was or as it is.
    for open_nodes in (before, nodes(again).open):
        for row in open_nodes:
            assert not any(
                row[:4].astype("<i8").tobytes() in content
                for name, content in left.items()
                if not name.endswith(".key")
            )


def test_a_file_and_the_log_beside_it_are_two_copies_to_who_has_the_key(tmp_path):
    """What the guarantee says of them: they show the user in between, exactly."""
    study = secure(tmp_path / "study.db", episodes=64)
    advance(study, 1, users=10)
    where = crashed(study, tmp_path / "killed")
    shutil.copytree(where.parent, tmp_path / "without")
    for part in ("-wal", "-shm"):
        (tmp_path / "without" / f"{where.name}{part}").unlink()
    old, new = (discreet.resume(path) for path in (tmp_path / "without" / where.name, where))
    assert (old.users, new.users) == (10, 11)
    exact = vector(study, episodes_of(study, 7, 1))
    np.testing.assert_array_equal(nodes(new).open[1] - nodes(old).open[1], exact)
    assert "a copy with the log that a crash left beside it" in COPIES[0]


def test_a_backup_that_is_restored_and_goes_on_meets_noise_of_its_own(tmp_path):
    study = secure(tmp_path / "study.db", episodes=64)
    advance(study, 1, users=20)
    backup, head = study.path.read_bytes(), study.head
    old = nodes(study).open.copy()
    data = episodes_of(study, 2, 12)
    study.tell(data, users=names(study, 12))
    first = nodes(study).closed.copy()
    study.path.write_bytes(backup)  # the same place, the same key
    restored = discreet.resume(study.path, head)
    np.testing.assert_array_equal(nodes(restored).open, old)
    restored.tell(data, users=names(restored, 12))
    second, sigma = nodes(restored).closed, nodes(restored)._noise.distribution.sigma
    for level in range(6):  # all of them closed at user 32
        spread = np.mean((first[level] - second[level]) ** 2.0) / (2 * sigma**2)
        draws = 1 if level > 3 else 2  # [16, 32) and [0, 32) were open when the copy was made
        low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], old.shape[1]) / old.shape[1]
        assert low * draws < spread < high * draws


def test_without_the_key_a_study_is_read_and_ended_and_nobody_is_counted(tmp_path):
    study = secure(tmp_path / "study.db", episodes=64)
    advance(study, 1, users=5)
    other = copy_of(study, tmp_path / "alone", key=False)
    assert (other.users, str(other.value)) == (5, str(study.value))
    other.verify()
    with pytest.raises(StudyError, match=r"Cannot read the study's key .*DISCREET_KEYS"):
        advance(other, 2)
    assert other.users == discreet.resume(other.path).users == 5
    shutil.copyfile(study.key_file, other.path.with_name(study.key_file.name))
    again = discreet.resume(other.path)
    advance(again, 2)
    assert again.users == 6
    again.key_file.unlink()
    discreet.resume(again.path).close()
    assert discreet.resume(again.path).finished


def test_another_key_is_refused(tmp_path):
    study = secure(tmp_path / "study.db", episodes=64)
    study.key_file.write_bytes(bytes(32))
    other = discreet.resume(study.path)
    with pytest.raises(StudyError, match="holds another key"):
        advance(other, 2)
    study.key_file.write_bytes(b"short")
    with pytest.raises(StudyError, match="Cannot read the study's key"):
        advance(discreet.resume(study.path), 2)
    assert discreet.resume(study.path).users == 0


def test_the_key_stands_apart_and_belongs_to_its_owner(tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    keys.mkdir()
    monkeypatch.setenv("DISCREET_KEYS", str(keys))
    study = secure(tmp_path / "study.db", episodes=64)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["study.db"]
    assert [study.key_file] == list(keys.iterdir())
    assert study.key_file.stat().st_mode & 0o777 == 0o600
    assert study.key_file.read_bytes() not in study.path.read_bytes()
    moved = study.path.rename(tmp_path / "another-name.db")
    advance(discreet.resume(moved), 1)
    monkeypatch.setenv("DISCREET_KEYS", str(tmp_path / "nowhere"))
    with pytest.raises(StudyError, match="nothing was begun"):
        secure(tmp_path / "other.db", episodes=64)
    assert not (tmp_path / "other.db").exists()


def test_throwaway_studies_leave_no_keys(tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    keys.mkdir()
    monkeypatch.setenv("DISCREET_KEYS", str(keys))
    study = secure(tmp_path / "study.db", episodes=64)
    assert discreet.check_study(study).ok
    assert list(keys.iterdir()) == [study.key_file]


def test_a_start_that_is_refused_leaves_no_key(tmp_path, monkeypatch):
    from discreet.study.store import Store

    monkeypatch.setattr(Store, "create", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        secure(tmp_path / "study.db", episodes=64)
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_not_released_yet_needs_a_key(tmp_path):
    rehearsal = begin(tmp_path / "rehearsal.db", learner="dp-ucbvi")
    batch = begin(tmp_path / "batch.db", sampler="secure", seed=None)
    local = begin(
        tmp_path / "local.db", discreet.Local(1), learner="dp-ucbvi", sampler="secure", seed=None
    )
    assert [s.key_file for s in (rehearsal, batch, local)] == [None, None, None]
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".db"] * 3


def test_every_write_is_sealed_anew(tmp_path):
    """Two writes of the same sums, and two files with the same key, share no sealed bytes."""
    study = secure(tmp_path / "study.db", episodes=64)
    written = [nodes(study).state()["open"].tobytes() for _ in range(50)]
    assert len({one[:12] for one in written}) == 50
    assert len({one[12:28] for one in written}) == 50
    assert len({len(one) for one in written}) == 1
    again = nodes(discreet.resume(study.path))
    again.open  # noqa: B018 - unsealed, so that it is written down anew
    others = [again.state()["open"].tobytes() for _ in range(50)]
    assert len({one[:12] for one in (*written, *others)}) == 100


def test_the_guarantee_says_what_copies_show(tmp_path):
    said = " ".join(secure(tmp_path / "study.db").guarantee.assumptions)
    for sentence in (*COPIES, CRASH):
        assert sentence in said
