"""What `audit` goes through: every path of every kind, nothing twice, nothing forgotten."""

from collections import Counter

import pytest

from discreet.privacy.auditing.cases import Entry, cases, entries
from discreet.privacy.auditing.paths import KINDS, short_paths

TREE = Entry("central", "tree-laplace", "continual")
LAPLACE = Entry("central", "laplace", "batch")
LOCAL = Entry("local", "laplace", "continual")
BITS = Entry("shuffle", "bits", "batch", epsilon=2.0, delta=1e-3)
FLIPS = Entry("local", "randomized-response", "continual")


def rows(*entries, quick=False):
    return list(cases(list(entries), quick=quick))


def labels(found):
    return [(case.kind, case.path) for case in found]


def test_a_central_batch_is_released_and_simulated():
    *found, large, fit = rows(LAPLACE)
    assert labels(found) == [("batch", "release"), ("batch", "simulate")]
    assert labels([large]) == [("batch", "Trajectories.counts, release (70,000 users)")]
    assert labels([fit]) == [("batch", "fit")]
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
        "continual": 5,
        "stationary": 3,
        "vector": 4,
        "layered": 2,
    }
    for name in ("add", "disk"):
        assert ("continual", f"{name} (256 releases, secure)") in found
    assert {path for kind, path in found if kind == "vector"} == {
        "VectorRelease.add (sensitivity 4)",
        "VectorRelease.noise_block (sensitivity 4)",
        "VectorRelease.add (sensitivity 4, 2 in one cell)",
        "VectorRelease.noise_block (sensitivity 4, 2 in one cell)",
    }


def test_local_streams_also_add_reports():
    found = labels(rows(LOCAL))
    for kind in ("continual", "stationary"):
        assert [path for k, path in found if k == kind][:3] == ["add", "add_report", "block"]


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
        ("local", "laplace", "batch"),
        ("central", "tree-laplace", "continual"),
    ):
        entry = Entry(trust, name, schedule, "paper")
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
    *found, large, _ = rows(LAPLACE)  # the last one is of `fit`
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
