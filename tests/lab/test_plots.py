"""Lines can be told apart."""

from types import SimpleNamespace

from discreet.lab.plots import looks_of


def line(trust, epsilon, mechanism="auto", label="L", delta=0.0):
    facts = {
        "label": label,
        "mechanism": mechanism,
        "trust": trust,
        "epsilon": epsilon,
        "delta": delta,
        "calibration": "exact",
    }
    return SimpleNamespace(facts=facts)


def test_colour_is_the_family_and_style_the_strength():
    looks = looks_of([line("none", None), line("central", 1.0), line("central", 0.1)])
    assert looks[1][0] == looks[2][0] != looks[0][0]
    assert looks[1][1] != looks[2][1]


def test_single_strengths_differ_in_style_too():
    looks = looks_of([line("none", None), line("central", 1.0), line("local", 1.0)])
    assert len({str(style) for _, style in looks}) == 3


def test_ten_lines_are_ten_looks():
    lines = [line("local", e, mechanism=m) for m in "abcde" for e in (2.0, 20.0)]
    lines += [line("local", 2.0, mechanism="a", delta=0.1)]
    assert len({str(look) for look in looks_of(lines)}) == 11
