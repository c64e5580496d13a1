"""Colours and styles tell lines apart, in one picture and in panels."""

from discreet.lab.spec import LearnerRow
from discreet.lab.style import lines_by_claim, looks_of, panels_of
from helpers.experiments import series


def test_trust_models_keep_their_colours_from_picture_to_picture():
    both = dict(zip("ab", looks_of([series("local", 1.0), series("central", 1.0)]), strict=True))
    alone = looks_of([series("central", 1.0)])[0]
    assert both["b"][0] == alone[0] != both["a"][0]


def test_colour_is_the_family_and_style_the_strength():
    looks = looks_of([series(), series("central", 1.0), series("central", 0.1)])
    assert looks[1][0] == looks[2][0] != looks[0][0]
    assert looks[1][1] != looks[2][1]


def test_single_strengths_differ_in_style_too():
    looks = looks_of([series(), series("central", 1.0), series("local", 1.0)])
    assert len({str(style) for _, style in looks}) == 3


def test_ten_lines_are_ten_looks():
    lines = [series("local", e, requested=m) for m in "abcde" for e in (2.0, 20.0)]
    lines += [series("local", 2.0, requested="a", delta=0.1)]
    assert len({str(look) for look in looks_of(lines)}) == 11


def test_learners_without_a_panel_are_one_picture():
    rows = [LearnerRow(name="psrl", label="a"), LearnerRow(name="psrl", label="b", panel="P")]
    a, b = series(label="a"), series(label="b")
    assert panels_of(rows[:1], [a]) == {"": [a]}
    assert panels_of(rows, [a, b]) == {"": [a], "P": [b]}


def test_panels_have_one_colour_per_algorithm_and_one_style_per_claim():
    group = [
        series("central", 0.1, label="printed: A", calibration="paper-003"),
        series("central", 1.0, label="printed: A", calibration="paper-003"),
        series("local", 1.0, label="exact: A"),
        series(label="B"),
    ]
    lines = lines_by_claim(group)
    assert [name for _, name, _ in lines] == [
        "A, claimed ε = 0.1",
        "A, claimed ε = 1",
        "A, claimed ε = 1",
        "B",
    ]
    looks = [look for _, _, look in lines]
    assert looks[1] == looks[2] and looks[0] != looks[1]
    assert looks[0][0] == looks[1][0] != looks[3][0]


def test_a_claim_that_every_line_keeps_is_called_epsilon():
    group = [series("central", 1.0, label="JDP: A"), series("local", 10.0, label="LDP: A")]
    assert [name for _, name, _ in lines_by_claim(group)] == ["A, ε = 1", "A, ε = 10"]


def test_with_one_epsilon_per_line_algorithms_differ_in_style_too():
    group = [
        series("central", 1.0, label="JDP: A"),
        series("central", 1.0, label="JDP: B"),
        series("local", 10.0, label="LDP: B"),
    ]
    first, second, third = (look for _, _, look in lines_by_claim(group))
    assert second == third
    assert first[0] != second[0] and first[1] != second[1]
