"""A ledger adds up person by person, is charged first, and forgets nothing."""

import json
import multiprocessing
import stat
from fractions import Fraction

import pytest

from discreet.errors import BudgetError, InvalidInputError
from discreet.privacy import Budget, Ledger
from discreet.privacy.ledger import Cost


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.ledger"


@pytest.fixture(params=["memory", "file"])
def make(request, path):
    """The ledger, opened anew each time if it is in a file."""
    if request.param == "file":
        return lambda: Ledger(path, budget=Budget(2, 1e-5))
    ledger = Ledger(budget=Budget(2, 1e-5))
    return lambda: ledger


def test_releases_about_one_person_add_up_and_those_about_others_do_not(make):
    assert make().record(1, 1e-6, users=["ann", "bob"]).spent == Cost.of(1, 1e-6)
    assert make().record(1, 1e-6, users=["eve", "joe"]).before == Cost.of(0)
    both = make().record(0.5, 2e-6, users=["bob", "kim"])
    assert (both.before, both.spent) == (Cost.of(1, 1e-6), Cost.of(1.5, 3e-6))
    assert both.left == Cost.of(0.5, 7e-6)
    assert (both.known, both.people) == (1, 2)
    assert make().record(0.5, users=["ann"]).spent.epsilon == Fraction(3, 2)
    with pytest.raises(BudgetError, match=r"Requested: epsilon 1, .* Remaining: epsilon 0\.5, "):
        make().record(1, users=["lea", "bob"])
    assert make().record(2, users=["lea"]).known == 0  # she was not charged by the refusal
    assert make().record(0.5, users=["bob"]).left == Cost.of(0, 7e-6)


def test_epsilon_and_delta_are_each_those_of_the_person_with_most(make):
    make().record(1.5, users=["ann"])
    make().record(0.5, 1e-5, users=["bob"])
    assert make().record(0.5, users=["ann", "bob"]).before == Cost.of(1.5, 1e-5)


def test_tenths_are_tenths(path):
    for _ in range(10):
        account = Ledger(path, budget=Budget(1)).record(0.1, users=["ann"])
    assert account.left == Cost.of(0)
    with pytest.raises(BudgetError):
        Ledger(path).record(1e-9, users=["ann"])


@pytest.mark.parametrize("parts", [[0.1, 0.9], [0.1] * 10, [0.3, 0.3, 0.4], [Fraction(1, 3)] * 3])
def test_parts_of_one_are_not_an_overspend_and_a_billionth_more_is(parts):
    ledger = Ledger(budget=Budget(1))
    for part in parts:
        account = ledger.record(part, users=["ann"])
    assert account.left == Cost.of(0)
    with pytest.raises(BudgetError):
        ledger.record(1e-9, users=["ann"])


def test_an_overspend_says_requested_remaining_difference():
    ledger = Ledger(budget=Budget(1, 1e-6))
    ledger.record(0.75, 5e-7, users=["ann"])
    message = (
        r"Requested: epsilon 0\.5, delta 1e-07\. Remaining: epsilon 0\.25, delta 5e-07\. "
        r"Difference: epsilon 0\.25, delta 0\."
    )
    with pytest.raises(BudgetError, match=message):
        ledger.record(0.5, 1e-7, users=["ann"])
    with pytest.raises(BudgetError, match="Difference: epsilon 0, delta 1e-07"):
        ledger.record(0.1, 6e-7, users=["ann"])


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True, None])
def test_bad_budgets(bad):
    with pytest.raises(InvalidInputError, match="epsilon"):
        Ledger(budget=Budget(bad))
    with pytest.raises(InvalidInputError, match="delta"):
        Ledger(budget=Budget(1, bad or 1))


@pytest.mark.parametrize(("epsilon", "delta"), [(-0.1, 0), (0.1, -1), (0.1, 2), (float("nan"), 0)])
def test_bad_costs(epsilon, delta):
    ledger = Ledger(budget=Budget(1))
    with pytest.raises(InvalidInputError):
        ledger.record(epsilon, delta, users=["ann"])
    assert ledger.record(1, users=["ann"]).before == Cost.of(0)


def test_a_table_is_recognised_whatever_its_people_are_called(path, tmp_path):
    table, copy = tmp_path / "t.csv", tmp_path / "copy.csv"
    table.write_text("the same bytes")
    copy.write_text("the same bytes")
    Ledger(path, table=table).record(1, users=["ann", "bob"])
    again = Ledger(path, table=copy).record(1, users=["1", "2"])
    assert again.before == Cost.of(1)
    assert Ledger(path).record(1, users=["ann"]).before == Cost.of(2)  # she was in both
    assert Ledger(path).record(1, users=["2"]).before == Cost.of(2)
    table.write_text("others")
    assert Ledger(path, table=table).record(1, users=["eve"]).before == Cost.of(0)


def test_every_table_that_was_ever_charged_is_recognised(path, tmp_path):
    """Not the last one alone, nor the first; each under names that nobody has seen."""
    tables = [tmp_path / f"{i}.csv" for i in range(3)]
    for i, table in enumerate(tables):
        table.write_text(f"table {i}")
        account = Ledger(path, table=table).record(1 + i, users=[f"{i}-ann", f"{i}-bob"])
        assert account.before == Cost.of(0)
    for i, table in enumerate(tables):
        assert Ledger(path, table=table).record(1, users=[f"new-{i}"]).before == Cost.of(1 + i)
    for i, table in enumerate(tables):  # all of a table, and whoever was in it under another name
        assert Ledger(path, table=table).record(1, users=[f"newer-{i}"]).before == Cost.of(2 + i)
        for name in (f"{i}-bob", f"newer-{i}"):
            assert Ledger(path).record(1, users=[name]).before == Cost.of(3 + i)


def test_only_its_owner_can_read_it_and_no_name_stands_in_it(path):
    Ledger(path).record(1, users=["ann lee"])
    Ledger(path).record(1, users=["ann lee"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ann" not in path.read_text()
    other = path.with_name("other.ledger")
    Ledger(other).record(1, users=["ann lee"])
    people = [json.loads(p.read_text())["people"][0][1] for p in (path, other)]
    assert people[0] != people[1]  # keys of their own


def test_a_person_is_kept_once_however_many_releases_there_are(path):
    for _ in range(20):
        Ledger(path).record(0.1, users=[f"user-{i}" for i in range(100)])
    assert len("".join(text for _, text in json.loads(path.read_text())["people"])) < 100 * 12


def test_a_budget_is_kept_and_may_shrink_and_not_grow(path):
    Ledger(path, budget=Budget(2, 1e-5)).record(1, users=["ann"])
    for larger in (Budget(3, 1e-5), Budget(1, 1e-4)):
        with pytest.raises(InvalidInputError, match="a budget of at most epsilon 2, delta 1e-05"):
            Ledger(path, budget=larger).record(0.1, users=["eve"])
    with pytest.raises(BudgetError):
        Ledger(path).record(1.5, users=["ann"])
    assert Ledger(path, budget=Budget(1.5)).record(0.5, users=["ann"]).left == Cost.of(0)
    assert Ledger(path).record(0.1, users=["eve"]).budget == Cost.of(1.5)


def test_what_is_refused_charges_nothing_and_a_declared_budget_is_kept(path):
    ledger = Ledger(path, budget=Budget(1))
    for cost, users in [
        ((1,), ["ann", "ann "]),
        ((1,), []),
        ((1,), "ann"),
        ((1,), ["ann\0"]),
        ((-1,), ["ann"]),
        ((float("inf"),), ["ann"]),
    ]:
        with pytest.raises((BudgetError, InvalidInputError)):
            ledger.record(*cost, users=users)
    assert not path.exists()
    with pytest.raises(BudgetError):
        ledger.record(2, users=["ann"])
    with pytest.raises(InvalidInputError, match="a budget of at most epsilon 1"):
        Ledger(path, budget=Budget(2)).record(2, users=["ann"])
    assert Ledger(path).record(1, users=["ann"]).before.epsilon == 0


def test_the_account_is_told_before_the_charge_and_can_stop_it(path):
    seen = []

    def told(account):
        seen.append((str(account), path.exists()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Ledger(path, told=told).record(1, users=["ann"])
    assert not path.exists()
    ((text, existed),) = seen
    assert "epsilon 0, delta 0 spent before" in text and not existed


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    ledger = Ledger(budget=Budget(2, 1e-5))
    account = ledger.record(1.00001, 1.00001e-6, users=["ann"])
    assert "epsilon 1.001, delta 1.001e-06 with this release" in str(account)
    assert "epsilon 0.9999, delta 8.999e-06 left of epsilon 2, delta 1e-05" in str(account)
    third = Ledger().record(Fraction(1, 3), users=["ann"])
    assert "epsilon 0.3334, delta 0 with this release" in str(third)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace("discreet-ledger-2", "discreet-ledger-9"),
        lambda text: text.replace('"1"', '"-1"'),
        lambda text: text.replace('"1"', '"1/0"'),
        lambda text: text.replace("    0\n", "    7\n"),
        lambda text: text.replace('"key": "', '"key": "00'),
    ],
)
def test_a_damaged_ledger_is_refused_and_left_as_it_is(path, damage):
    Ledger(path).record(1, users=["ann"])
    text = damage(path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="nothing was released"):
        Ledger(path).record(1, users=["ann"])
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    for place in (tmp_path / "nowhere" / "p.ledger", tmp_path):
        with pytest.raises(InvalidInputError, match=r"Nothing was released|Cannot read the ledger"):
            Ledger(place).record(1, users=["ann"])
    with pytest.raises(InvalidInputError, match=r"Cannot read .*No such file"):
        Ledger(table=tmp_path / "none.csv").record(1, users=["ann"])


def _charge(path, started):
    started.wait()
    for _ in range(25):
        Ledger(path).record(1, users=["ann"])


def test_links_to_one_ledger_are_that_ledger(path, tmp_path):
    Ledger(path, budget=Budget(2)).record(1, users=["ann"])
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "people.ledger").symlink_to(path)
    Ledger(tmp_path / "a" / "people.ledger").record(1, users=["ann"])
    for other in (path, tmp_path / "b" / "people.ledger"):
        with pytest.raises(BudgetError, match="1 of 1 people were in an earlier release"):
            Ledger(other).record(1, users=["ann"])
    assert (tmp_path / "a" / "people.ledger").is_symlink()
    assert not (tmp_path / "a" / "people.ledger.lock").exists()


def test_a_ledger_of_two_names_is_refused_under_both(path):
    """It is replaced whole: what is charged at one name would be missing at the other."""
    Ledger(path).record(1, users=["ann"])
    (other := path.with_name("other.ledger")).hardlink_to(path)
    before = path.read_bytes()
    for name in (path, other):
        with pytest.raises(InvalidInputError, match=r"hard link.* nothing was released"):
            Ledger(name).record(1, users=["ann"])
    assert path.read_bytes() == other.read_bytes() == before
    other.unlink()
    assert Ledger(path).record(1, users=["ann"]).before == Cost.of(1)


def test_two_processes_at_once_lose_no_charge(path):
    context = multiprocessing.get_context("spawn")
    started = context.Barrier(2)
    both = [context.Process(target=_charge, args=(path, started)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert Ledger(path).record(1, users=["ann"]).before == Cost.of(50)
