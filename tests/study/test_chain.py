"""The hash chain: any edit changes the head, and every head a study has had stays known."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import StudyError
from discreet.study import chain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def study(batches=3, size=2):
    """The content of a study that has told some batches, made by the chain's own functions."""
    content = {
        "format": "f",
        "config": {"seed": 1},
        "key": "secret",
        "users": [],
        "told": [],
        "state": {"visits": 0},
    }
    content["head"] = chain.head_of(content)
    for batch in range(batches):
        users = [f"{batch}-{i}" for i in range(size)]
        entry = {"batch": batch, "users": size, "before": content["head"]}
        entry["link"] = chain.next_link(chain.last_link(content), entry, users)
        content["users"] += users
        content["told"].append(entry)
        content["state"] = {"visits": batch + 1}
        content["head"] = chain.head_of(content)
    return content


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_whole_file_passes(batches):
    chain.verify(study(batches), "file")


EDITS = {
    "a user": lambda c: c["users"].__setitem__(0, "somebody"),
    "the order of users": lambda c: c["users"].reverse(),
    "one user less": lambda c: c["users"].pop(),
    "one user more": lambda c: c["users"].append("late"),
    "a batch less": lambda c: c["told"].pop(),
    "the first batch": lambda c: c["told"][0].update(batch=7),
    "a link": lambda c: c["told"][1].update(link="0" * 64),
    "the state": lambda c: c["state"].update(visits=9),
    "the configuration": lambda c: c["config"].update(seed=2),
    "the key": lambda c: c.update(key="other"),
    "a new part": lambda c: c.update(note="x"),
    "no head": lambda c: c.pop("head"),
    "no users": lambda c: c.update(users=None),
    "an entry that is none": lambda c: c["told"].append(3),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_every_edit_is_noticed(edit):
    content = study()
    edit(content)
    with pytest.raises(StudyError, match="edited or damaged"):
        chain.verify(content, "file")


def test_heads_are_known_in_order_and_the_last_is_the_present_one():
    content = study(3)
    seen = list(chain.heads(content))
    assert len(set(seen)) == 4
    assert seen[0] == study(0)["head"] and seen[-1] == content["head"]
    for head in seen:
        chain.check_head(content, head, "file")


def test_an_older_copy_does_not_know_a_newer_head():
    newest = study(3)["head"]
    with pytest.raises(StudyError, match="older copy or another study"):
        chain.check_head(study(2), newest, "file")
    chain.check_head(study(2), None, "file")  # whoever kept no head cannot ask


@given(PLAIN, PLAIN)
def test_links_tell_values_apart(one, other):
    same = chain.link("", one) == chain.link("", other)
    assert same == (repr(_sorted(one)) == repr(_sorted(other)))


def _sorted(value):
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(part) for part in value] if isinstance(value, list) else value


def test_a_link_covers_what_came_before():
    assert chain.link("a", 1) != chain.link("b", 1)


def test_the_functions_change_nothing():
    content = study()
    before = copy.deepcopy(content)
    chain.verify(content, "file")
    chain.head_of(content)
    list(chain.heads(content))
    assert content == before
