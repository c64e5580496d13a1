"""What `audit` goes through: every path of every kind, nothing twice, nothing forgotten."""

from collections import Counter
from dataclasses import replace

import pytest

from discreet.auditing.cases import Audited, entries, find
from discreet.auditing.paths import KINDS, short_paths
from discreet.auditing.run import all_cases as cases
from discreet.errors import UnknownNameError
from discreet.privacy.mechanisms.base import BatchMechanism, ContinualMechanism
from discreet.privacy.mechanisms.registry import everything

TREE = Audited("central", "tree-signed", "continual")
LAPLACE = Audited("central", "laplace", "batch")
LOCAL = Audited("local", "laplace", "continual")
BITS = Audited("shuffle", "bits", "batch", epsilon=2.0, delta=1e-3)
FLIPS = Audited("local", "randomized-response", "continual")


def rows(*entries, quick=False):
    return list(cases(list(entries), quick=quick))


def labels(found):
    return [(case.kind, case.path) for case in found]


def test_a_central_batch_is_released_and_simulated():
    *found, large, twice, thrice, fit, both = rows(LAPLACE)
    assert labels([twice, thrice]) == [
        ("returning", "release (2 batches)"),
        ("returning", "release (3 batches)"),
    ]
    assert labels(found) == [("batch", "release"), ("batch", "simulate")]
    assert labels([large]) == [("batch", "Trajectories.counts, release (70,000 users)")]
    assert labels([fit, both]) == [
        ("batch", "fit"),
        ("returning", "fit (2 episodes of one person)"),
    ]
    for case in found:
        assert (case.mechanism, case.calibration, case.notion) == (
            "central/laplace",
            "exact",
            "JDP",
        )
        assert case.claimed == (1.0, 0.0)


def test_a_stream_is_audited_in_every_kind():
    found = labels(rows(TREE))
    assert Counter(kind for kind, _ in found) == {
        "continual": 3,
        "stationary": 2,
        "vector": 4,
        "layered": 2,
        "returning": 2,
    }
    assert ("continual", "add (256 releases, secure)") in found
    assert {path for kind, path in found if kind == "vector"} == {
        "add (sensitivity 4)",
        "block (sensitivity 4)",
        "add (sensitivity 4, 2 in one cell)",
        "block (sensitivity 4, 2 in one cell)",
    }


def test_shuffled_batches_are_also_audited_in_crowds_and_with_dishonest_users():
    found = rows(BITS)
    release = next(case for case in found if case.path == "release")
    crowds = [path for path in release.paths if not path.thorough]
    assert [path.note for path in crowds] == ["1,000 users", "100,000 users"]
    assert all(list(path.neighbours) == ["everything"] for path in crowds)
    honest = [case.path for case in found if case.kind == "honest"]
    assert honest == [f"release_reports ({h} of {n} honest)" for h, n in ((2, 4), (9, 10), (1, 2))]
    quick = next(case for case in rows(BITS, quick=True) if case.path == "release")
    assert [path.note for path in quick.paths if not path.thorough] == ["1,000 users"]


def test_no_dishonest_users_without_a_shuffler():
    assert not [case for case in rows(LAPLACE, TREE) if case.kind == "honest"]


def test_of_printed_constants_the_first_path_only():
    for trust, name, schedule in (
        ("local", "laplace", "continual"),
        ("central", "tree-laplace", "continual"),
    ):
        entry = Audited(trust, name, schedule, "paper")
        [case] = rows(entry)
        assert case.calibration == "paper"
        assert case.path in ("release", "add")


def test_quick_leaves_out_long_streams_but_one():
    assert any("256" in path for _, path in labels(rows(TREE, quick=True)))
    assert not any("256" in path for _, path in labels(rows(LOCAL, quick=True)))
    assert any("256" in path for _, path in labels(rows(LOCAL)))
    slow = {entry.mechanism for entry in entries() if entry.sizes.slow}
    assert slow == {"bounded"}


def test_no_row_twice():
    found = [(c.mechanism, c.kind, c.path, c.calibration) for c in rows(LAPLACE, TREE, BITS, FLIPS)]
    assert [row for row, times in Counter(found).items() if times > 1] == []


def test_all_kinds_occur():
    assert {case.kind for case in rows(TREE, BITS)} == set(KINDS)


def test_randomised_streams_have_no_vectors_but_long_ones():
    found = labels(rows(FLIPS))
    assert {kind for kind, _ in found} == {"continual", "stationary"}
    assert ("continual", "add (256 releases, secure)") in found


def test_targets_are_the_same_way_where_it_is_easiest_to_attack():
    *found, large = [case for case in rows(LAPLACE) if case.kind != "returning"][:-1]  # not `fit`
    for case in found:
        target = case.target()
        assert target.name == case.path
    assert large.target() is None
    long = next(case for case in rows(TREE) if "256" in case.path)
    assert long.target() is None


def test_a_long_stream_gets_a_hint_from_its_blocks():
    long = next(case for case in rows(TREE) if "256" in case.path)
    hint = long.hint()
    assert hint.epsilon(0.0) == pytest.approx(1.0)
    assert rows(LAPLACE)[0].hint() is None


def test_paths_of_either_schedule():
    assert {path.kind for path in short_paths(LAPLACE.small())} == {"batch"}
    assert {path.kind for path in short_paths(TREE.small())} == {"continual"}


# --- every mechanism of the registry, in every kind, by its name

TWO = (("central", "tree-laplace"), ("local", "laplace"))
KNOWN = [m for m in everything() if m.trust != "none"]
PRINTED = {
    ("central", "tree-laplace", "continual"),
    ("local", "gaussian", "continual"),
    ("local", "laplace", "continual"),
    ("shuffle", "bits", "batch"),
}


@pytest.fixture(scope="module")
def known():
    return list(entries())


def exact(known):
    return [e for e in known if e.calibration == "exact"]


def test_every_mechanism_of_the_registry_is_audited(known):
    found = [(e.trust, e.schedule, e.mechanism) for e in exact(known) if not e.centred]
    assert found == [(m.trust, m.schedule, m.name) for m in KNOWN]
    both = [e.name for e in exact(known) if e.centred]
    assert both == [
        e.name + "-centred" for e in exact(known) if "centred" in e.sizes.forms and not e.centred
    ]
    assert "central/gaussian-centred" in both
    assert all(e.small().centred and not e.small().last_transitions for e in known if e.centred)


def test_a_mechanism_that_is_registered_is_audited(monkeypatch):
    from discreet.privacy.mechanisms import registry

    mine = replace(KNOWN[0], name="mine")
    monkeypatch.setattr(registry, "_MECHANISMS", [*registry._MECHANISMS, mine])
    assert "central/mine" in {e.name for e in entries()}


def test_printed_constants_are_audited_where_a_paper_prints_them(known):
    printed = {(e.trust, e.mechanism, e.schedule) for e in known if e.calibration == "paper"}
    assert printed == PRINTED
    for entry in known:
        if entry.calibration == "paper":
            assert entry.small().guarantee.claimed is not None


def test_names_are_different(known):
    names = [(e.name, e.calibration) for e in known]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("trust", "mechanism", "schedule", "name"),
    [
        ("central", "gaussian", "batch", "central/gaussian"),
        ("local", "laplace", "continual", "local/laplace"),
        ("central", "toeplitz", "continual", "central/toeplitz"),
    ],
)
def test_names(trust, mechanism, schedule, name):
    assert Audited(trust, mechanism, schedule).name == name


@pytest.mark.parametrize("mechanism", KNOWN, ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}")
def test_pure_mechanisms_are_asked_for_a_pure_epsilon(mechanism):
    entry = Audited(mechanism.trust, mechanism.name, mechanism.schedule, epsilon=2.0, delta=1e-5)
    assert entry.claimed == (2.0, 0.0 if mechanism.pure else 1e-5)
    assert (entry.model.epsilon, entry.model.delta) == entry.claimed
    assert entry.model.mechanism == mechanism.name


def test_kinds():
    entry = Audited("central", "toeplitz", "continual")
    assert entry.kind == "continual"
    assert replace(entry, stationary=True).kind == "stationary"
    assert Audited("central", "gaussian", "batch").kind == "batch"


FAST = [m for m in KNOWN if m.name not in ("bounded", "toeplitz")]


@pytest.mark.parametrize("mechanism", FAST, ids=lambda m: f"{m.trust}-{m.schedule}-{m.name}")
def test_plans_are_small_and_of_the_right_schedule(mechanism):
    entry = Audited(mechanism.trust, mechanism.name, mechanism.schedule)
    plan, target = entry.small(), entry.target()
    kind = BatchMechanism if mechanism.schedule == "batch" else ContinualMechanism
    for each in (plan, target):
        assert isinstance(each, kind)
        assert each.name == mechanism.name
        assert each.guarantee.epsilon <= 1 + 1e-9
        assert each.guarantee.delta == entry.claimed[1]
    assert (target.shape.horizon, target.statistics) == (1, ("visits",))
    assert plan.shape.states <= 2 and plan.shape.horizon <= 6


def test_listed_mechanisms_have_few_outcomes():
    split = Audited("local", "split", "batch").small()
    assert (split.statistics, split.last_transitions) == (("transitions", "rewards"), False)
    for name in ("randomized-response", "one-step"):
        stream = Audited("local", name, "continual").small()
        assert (stream.statistics, stream.episodes) == (("rewards",), 1)


def test_stationary_targets_have_two_steps_to_pool():
    entry = Audited("central", "tree-laplace", "continual", stationary=True)
    assert entry.target().shape.horizon == 2
    assert entry.target().stationary and entry.small().stationary
    assert not replace(entry, stationary=False).small().stationary


def test_long_streams_have_256_releases_of_few_counters():
    plan = Audited("central", "tree-laplace", "continual").long()
    assert (plan.episodes, plan.cells) == (256, 2)


def test_printed_streams_are_a_power_of_two_long():
    assert Audited("central", "tree-laplace", "continual", "paper").small().episodes == 8


def test_printed_constants_do_not_warn_here():
    """Warnings are errors in this suite: an audit knows what it asked for."""
    plan = Audited("local", "laplace", "continual", "paper").small()
    assert plan.guarantee.claimed is not None


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "trusts"),
    [
        ("central/gaussian", {"central"}),
        ("gaussian", {"central", "local"}),
        ("central", {"central"}),
        ("local", {"local"}),
        ("bits", {"shuffle"}),
    ],
)
def test_mechanisms_are_found_by_name_word_or_trust_model(name, trusts):
    found = find(name)
    assert {e.trust for e in found} == trusts
    assert all(name in (e.name, e.mechanism, e.trust) for e in found)


def test_what_is_asked_for_is_passed_on():
    assert all(
        (e.epsilon, e.delta) == (3.0, 1e-4) for e in find("laplace", epsilon=3.0, delta=1e-4)
    )


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'central/toeplitz'"):
        find("central/toeplits")
    with pytest.raises(UnknownNameError, match="did you mean 'shuffle'"):
        find("shufle")


def test_every_stream_that_adds_noise_is_audited_on_vectors(known):
    adding = [e for e in known if e.adds_noise]
    streams = [e for e in exact(known) if e.schedule == "continual"]
    assert adding == [e for e in streams if e.mechanism not in ("randomized-response", "one-step")]
    assert not any(replace(e, stationary=True).adds_noise for e in streams)
    tree, local = (Audited(*name, "continual") for name in TWO)
    for entry, units in ((tree, ["4", "4, 2 in one cell"]), (local, ["4"])):
        found = [case.path for case in cases([entry], quick=True) if case.kind == "vector"]
        assert found == [
            f"{way} (sensitivity {unit})" for unit in units for way in ("add", "block")
        ]
