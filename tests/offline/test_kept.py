"""What a ledger keeps of a release: it is charged, then drawn once, then kept, and only then seen.

Processes are killed before every line of the code between the question and the answer.
"""

import json
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest

from discreet import Central, evaluate_policy, fit
from discreet._files import hold_alone
from discreet.errors import BudgetError, InvalidInputError
from discreet.mdp import Shape, Trajectories
from discreet.offline import release as releasing
from discreet.privacy import Budget, Ledger
from discreet.privacy.ledger import Cost
from helpers.soaking import fork

SHAPE = Shape(2, 2, 2)
TRUST = Central(1, 1e-6, mechanism="gaussian")
NAMES = ["ann", "bob", "eve"]


def people(seed=0, users=3):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(2, size=(users, 3)), rng.integers(2, size=(users, 2))
    return Trajectories(states, actions, rng.random((users, 2)))


PEOPLE = people()


def fitted(ledger, data=PEOPLE, trust=TRUST, **options):
    return fit(data, trust, **{"shape": SHAPE, "users": NAMES, "ledger": ledger} | options)


def evaluated(ledger, data=PEOPLE, trust=TRUST, **options):
    given = {"shape": SHAPE, "users": NAMES, "ledger": ledger} | options
    return evaluate_policy(data, np.zeros((2, 2), int), trust, **given)


DOORS = pytest.mark.parametrize("door", [fitted, evaluated])


def said(found):
    """All of an answer but its account."""
    return {name: value for name, value in found.to_dict().items() if name != "ledger"}


def charges(path):
    """For each charge, whether its release was kept."""
    kept = json.loads(path.read_text())["releases"] if path.exists() else []
    return [entry[-1] is not None for entry in kept]


@DOORS
@pytest.mark.parametrize("in_memory", [False, True])
def test_the_same_again_is_what_was_kept_and_costs_nothing(tmp_path, monkeypatch, door, in_memory):
    ledger = Ledger(None if in_memory else tmp_path / "l", budget=Budget(1, 1e-6))
    first = door(ledger)
    assert (first.account.again, first.to_dict()["ledger"]["charged"]) == (False, True)
    monkeypatch.setattr(releasing, "release", lambda *_, **__: pytest.fail("It was drawn again."))
    for _ in range(2):
        again = door(ledger)
        assert said(again) == said(first) and str(again.guarantee) == str(first.guarantee)
        assert again.account.again and not again.to_dict()["ledger"]["charged"]
        assert again.account.before == again.account.spent == first.account.spent
        assert "nothing with this release, which was made before and kept" in str(again)


def test_another_width_is_another_look_at_the_same_release(tmp_path):
    """And so are known behaviour and names: nobody is released for them."""
    fitted(tmp_path / "l")
    assert fitted(tmp_path / "l", width=3.0).account.again
    assert fitted(tmp_path / "l", behaviour=np.full((2, 2), 0.5)).account.again


def changed(**parts):
    """The same episodes, but for these."""
    return {"data": replace(PEOPLE, **parts)}


ONE_LESS = {"data": people(users=2), "users": NAMES[:2]}
OTHERS = {
    "one state": changed(states=PEOPLE.states ^ np.eye(3, dtype=int)),
    "one action": changed(actions=1 - PEOPLE.actions),
    "one reward": changed(rewards=PEOPLE.rewards**2),
    "other names": {"users": ["ann", "bob", "joe"]},
    "names in another order": {"users": NAMES[::-1]},
    "fewer": ONE_LESS,
    "epsilon": {"trust": Central(0.5, 1e-6, mechanism="gaussian")},
    "delta": {"trust": Central(1, 2e-6, mechanism="gaussian")},
    "mechanism": {"trust": Central(1, 1e-6, mechanism="laplace")},
    "participations": {"trust": Central(1, 1e-6, mechanism="gaussian", participations=2)},
    "start": {"start": np.array([True, False])},
}


@DOORS
@pytest.mark.parametrize("other", OTHERS)
def test_anything_else_is_a_release_of_its_own(tmp_path, door, other):
    door(tmp_path / "l")
    found = door(tmp_path / "l", **OTHERS[other])
    assert not found.account.again
    assert charges(tmp_path / "l") == [True, True]
    assert door(tmp_path / "l").account.again  # the first is still there


@pytest.mark.parametrize(
    "other",
    [{"support": np.eye(2) > 0}, {"stationary": True}, {"rewards": np.zeros((2, 2))}],
    ids=str,
)
def test_so_is_what_fit_alone_is_asked(tmp_path, other):
    fitted(tmp_path / "l")
    assert not fitted(tmp_path / "l", **other).account.again


def test_sums_are_not_taken_for_the_episodes(tmp_path):
    sums = PEOPLE.counts(SHAPE, np.random.default_rng(0), np.ones(SHAPE.visits, bool))
    fitted(tmp_path / "l")
    assert not fitted(tmp_path / "l", sums).account.again
    assert fitted(tmp_path / "l", sums).account.again


def test_another_ledger_knows_nothing_of_it(tmp_path):
    fitted(tmp_path / "l")
    assert not fitted(tmp_path / "m").account.again


@DOORS
def test_a_rehearsal_is_not_kept(tmp_path, door):
    door(tmp_path / "l", sampler="simulation", seed=0)
    assert list(tmp_path.iterdir()) == []
    assert not door(tmp_path / "l").account.again


@pytest.mark.parametrize("damage", [lambda _: "{}", lambda _: 7, lambda text: text[:-9]])
def test_a_release_that_was_damaged_is_not_drawn_again(tmp_path, damage):
    fitted(tmp_path / "l")
    plain = json.loads((tmp_path / "l").read_text())
    plain["releases"][0][-1] = damage(plain["releases"][0][-1])
    (tmp_path / "l").write_text(json.dumps(plain))
    with pytest.raises(InvalidInputError, match="that the ledger kept: it was damaged"):
        fitted(tmp_path / "l")
    assert len(charges(tmp_path / "l")) == 1


def test_nobody_can_guess_a_table_without_the_ledger(tmp_path):
    """Digests of the same question are keyed: those of two ledgers differ."""
    fitted(tmp_path / "l")
    fitted(tmp_path / "m")
    one, other = (json.loads((tmp_path / name).read_text()) for name in "lm")
    assert one["releases"][0][3] != other["releases"][0][3]


STEPS = {"released", "once", "_held", "_write", "write_atomically", "make", "release", "_packed"}
FILES = ("ledger.py", "_files.py", "release.py")


def killed_before(line, act):
    """Do ``act()`` in a process that is killed before so many lines of `STEPS`; whether it was."""
    child = fork()
    if not child:
        left = [line]

        def trace(frame, event, _):
            code = frame.f_code
            if code.co_name not in STEPS or not code.co_filename.endswith(FILES):
                return None
            left[0] -= event == "line"
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        try:
            sys.settrace(trace)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@DOORS
def test_whenever_it_is_killed_there_is_a_charge_for_every_draw(tmp_path, monkeypatch, door):
    drawn, usual, line, met = tmp_path / "drawn", releasing.release, 0, set()

    def release(*arguments, **options):
        with drawn.open("ab", 0) as file:
            file.write(b"d")
        return usual(*arguments, **options)

    monkeypatch.setattr(releasing, "release", release)
    door(tmp_path / "warm")
    killed = True
    while killed:
        folder = tmp_path / str(line)
        folder.mkdir()
        drawn.write_bytes(b"")
        path, seen = folder / "l", folder / "seen"

        def act(path=path, seen=seen):
            seen.write_text(json.dumps(said(door(path))))

        killed = killed_before(line, act)
        before = charges(path)
        met.add((tuple(before), drawn.stat().st_size))
        assert drawn.stat().st_size <= len(before) <= 1
        assert before == [True] or not seen.exists()
        found = door(path)
        lost = before == [False]
        assert (found.account.again, found.account.lost) == (before == [True], int(lost))
        assert charges(path) == [False] * lost + [True]
        assert drawn.stat().st_size <= len(charges(path))
        if seen.exists():
            assert json.loads(seen.read_text()) == said(found)
        assert said(door(path)) == said(found)
        assert {p.name for p in folder.iterdir()} <= {"l", "l.lock", "seen"}  # no stray files
        line += 1
    assert met == {((), 0), ((False,), 0), ((False,), 1), ((True,), 1)}


def test_nobody_else_uses_the_ledger_while_it_is_drawn(tmp_path, monkeypatch):
    """Who asked for the same meanwhile would find a charge, and draw for another."""
    usual = releasing.release

    def release(*arguments, **options):
        with pytest.raises(BlockingIOError):
            hold_alone(tmp_path / "l")
        return usual(*arguments, **options)

    monkeypatch.setattr(releasing, "release", release)
    assert fitted(tmp_path / "l").account.known == 0


def test_what_was_charged_and_not_kept_is_charged_again_or_refused(tmp_path, monkeypatch):
    def ended(*_, **__):
        raise KeyboardInterrupt

    ledger = Ledger(tmp_path / "l", budget=Budget(3, 1e-5))
    for lost in range(2):
        with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
            killed.setattr(releasing, "release", ended)
            fitted(ledger)
        assert charges(tmp_path / "l") == [False] * (lost + 1)
    found = fitted(ledger)
    assert found.account.spent.epsilon == Cost.of(3).epsilon
    assert "this same release was charged 2 times before and ended before it was kept" in str(found)
    with pytest.raises(BudgetError):
        evaluated(ledger)
    assert fitted(ledger).account.again


def test_a_full_disk_after_the_draw_shows_nothing(tmp_path, monkeypatch):
    """The charge stands, and the sentence comes with the next one."""
    usual, written = releasing.release, []

    def release(*arguments, **options):
        monkeypatch.setattr("discreet.privacy.ledger.write_atomically", full)
        return usual(*arguments, **options)

    def full(*_, **__):
        written.append(1)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "release", release)
        with pytest.raises(InvalidInputError, match="No space left on device"):
            fitted(tmp_path / "l")
    monkeypatch.undo()
    assert written and charges(tmp_path / "l") == [False]
    assert fitted(tmp_path / "l").account.lost == 1
