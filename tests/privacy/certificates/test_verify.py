"""The verifier by itself: accepts what holds, refuses everything else with one sentence."""

import copy
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.privacy.certificates import verify
from helpers.certificates import recomputed, release, resealed

pytestmark = pytest.mark.core
HERE = Path(verify.__file__)
NOISES = tuple(verify.NOISES)

BITS = {
    "format": "discreet-certificate/1",
    "release": release("shuffle batch", "bits", users=1),
    "noise": {"name": "binomial", "trials": 2571, "probability": "1/2"},
    "epsilon": "1",
    "delta": "1/1000000",
    "method": {"name": "connect-the-dots", "base": "2047/2048", "bits": 128, "cut": "1e-18"},
    "bound": "997602269/1000000000000000",
}
"""The certificate of the specification."""


def small(**changes):
    return {
        "format": "discreet-certificate/1",
        "release": release(),
        "noise": {"name": "discrete-laplace", "scale": "36"},
        "epsilon": "1",
        "delta": "0",
        "method": {"name": "rational"},
        "bound": "0",
    } | changes


def test_the_certificate_of_the_specification_holds():
    recomputed = verify.check(BITS)
    assert Fraction("9.97602e-7") < recomputed <= Fraction(BITS["bound"])


@pytest.mark.parametrize("noise", NOISES)
def test_every_distribution_is_accepted(made, noise):
    assert verify.check(made[noise]) <= Fraction(made[noise]["bound"])


@pytest.mark.parametrize("noise", NOISES)
def test_an_edited_number_is_refused(made, noise):
    for part in ("epsilon", "delta", "bound"):
        data = copy.deepcopy(made[noise])
        data[part] = str(Fraction(data[part]) + Fraction(1, 10**12))
        with pytest.raises(verify.Refused, match="edited"):
            verify.check(data)
    data = copy.deepcopy(made[noise])
    data["noise"]["note"] = "1"
    with pytest.raises(verify.Refused, match="edited"):
        verify.check(data)


@pytest.mark.parametrize("noise", NOISES)
def test_half_the_noise_is_refused_even_with_a_fitting_digest(made, noise):
    data = copy.deepcopy(made[noise])
    halved = {
        "binomial": ("trials", 100),
        "poisson": ("mean", "25"),
        "histogram": ("trials", [50, 30]),
        "table": ("weights", [1, 9, 1]),
        "randomized-response": ("flip", "1/6"),
        "one-step": ("flip", "27/200"),
        "discrete-laplace": ("scale", "18"),
        "layered-gaussian": ("loss_sigma", "512"),
    }
    name, value = halved.get(noise, ("sigma", None))
    data["noise"][name] = value if value is not None else str(Fraction(data["noise"]["sigma"]) / 2)
    with pytest.raises(verify.Refused, match="Recomputed"):
        verify.check(resealed(data))


@pytest.mark.parametrize("noise", NOISES)
def test_more_moves_are_refused(made, noise):
    moves = copy.deepcopy(verify.File(made[noise]).moved)
    if isinstance(moves, list):
        moves[0]["times"] *= 2
    elif noise == "histogram":
        moves["times"][1] += 1
    else:
        name = {"gaussian-grid": "squares"}.get(noise, "losses")
        moves[name] *= 2
    with pytest.raises(verify.Refused, match="Recomputed"):
        recomputed(made[noise], moves)


@pytest.mark.parametrize(
    ("part", "name", "value", "reason"),
    [
        ("noise", "trials", 100, "as lists of 2 kinds"),
        ("noise", "trials", [], "as lists of 2 kinds"),
        ("noise", "trials", [100], "as lists of 2 kinds"),
        ("noise", "trials", [100, 0], "noise.trials from 1"),
        ("noise", "trials", [100, True], "honest users"),
        ("noise", "probability", ["1/2", "2/3"], "at most 1/2"),
        ("noise", "probability", ["1/2", "0"], "above 0"),
        ("noise", "probability", ["1/2", 0.5], "exact rational"),
        ("noise", "trials", [10**17, 10**17], "mean 1e9"),
    ],
)
def test_malformed_classes_are_refused(made, part, name, value, reason):
    data = copy.deepcopy(made["histogram"])
    data[part][name] = value
    with pytest.raises(verify.Refused, match=reason):
        verify.check(resealed(data))


def test_a_bound_below_what_is_found_again_and_one_above_delta(made):
    data = made["binomial"]
    bound = Fraction(data["bound"])
    with pytest.raises(verify.Refused, match="above the certificate's bound"):
        verify.check(resealed(data | {"bound": str(bound * (1 - Fraction(1, 10**6)))}))
    with pytest.raises(verify.Refused, match="exceeds delta"):
        verify.check(resealed(data | {"delta": str(bound * (1 - Fraction(1, 10**6)))}))
    with pytest.raises(verify.Refused, match="Recomputed"):
        verify.check(resealed(data | {"epsilon": "999/1000"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "discreet-certificate/2"}, "Unknown format"),
        ({"noise": {"name": "clusters"}}, "Unknown noise 'clusters'"),
        ({"noise": {"name": ["x"]}}, "Unknown noise"),
        ({"noise": 3}, "noise.name is missing"),
        ({"noise": {"name": "discrete-laplace", "scale": "36", "more": "1"}}, "exactly the fields"),
        ({"noise": {"name": "discrete-laplace", "scale": 36}}, "rational number in a string"),
        ({"noise": {"name": "discrete-laplace", "scale": "0"}}, "noise.scale > 0"),
        ({"noise": {"name": "discrete-laplace", "scale": "36/0"}}, "exact rational"),
        ({"method": {"name": "trust-me"}}, "Unknown method"),
        ({"moves": [{"shift": 1, "times": 35}]}, "Expected a certificate"),
        ({"about": {}}, "Expected a certificate"),
        ({"release": {}}, "release.trust is missing"),
        ({"release": None}, "release.trust is missing"),
        ({"release": release() | {"more": 1}}, "exactly the fields"),
        ({"release": release() | {"mechanism": "clusters"}}, "no release by 'clusters'"),
        (
            {"release": release() | {"mechanism": "gaussian"}},
            "no noise of kind discrete-laplace",
        ),
        ({"release": release() | {"mechanism": "bits"}}, "no release by 'bits'"),
        ({"release": release() | {"schedule": "continual"}}, "no release by 'laplace'"),
        ({"release": release(participations=0)}, "participations to be from 1"),
        ({"release": release(participations=True)}, "participations to be from 1"),
        ({"release": release(horizon=0)}, "horizon to be from 1"),
        ({"release": release(horizon=6.0)}, "horizon to be from 1"),
        ({"release": release(last_transitions=1)}, "true or false"),
        ({"release": release(statistics=[])}, "statistics to be some"),
        ({"release": release(statistics=["visits", "visits"])}, "statistics to be some"),
        ({"release": release(statistics=["losses"])}, "statistics to be some"),
        ({"release": release(statistics="visits")}, "statistics to be some"),
        ({"epsilon": "nan"}, "exact rational"),
        ({"epsilon": "-1"}, "epsilon >= 0"),
        ({"delta": "1"}, "delta in"),
        ({"extra": 1}, "Expected a certificate"),
    ],
)
def test_malformed_content_is_refused(changes, message):
    with pytest.raises(verify.Refused, match=message):
        verify.check(small(**changes))


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("method", "base", "1/3", "form"),
        ("method", "bits", 1000, "from 32 to 256"),
        ("method", "cut", "0", "method.cut > 0"),
        ("method", "base", "1099511627775/1099511627776", "too fine|too few"),
        ("noise", "probability", "1", "0 < probability < 1"),
        ("noise", "trials", "2571", "honest users"),
    ],
)
def test_an_unusable_method_is_refused(part, name, value, message):
    data = copy.deepcopy(BITS)
    data[part][name] = value
    with pytest.raises(verify.Refused, match=message):
        verify.check(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "not JSON"),
        ('{"format": 1.5}', "exact numbers"),
        ('{"format": NaN}', "exact numbers"),
        ('{"format": "a", "format": "b"}', "twice"),
        ("[1]", "Expected a certificate"),
    ],
)
def test_a_malformed_file_is_refused_with_one_sentence(tmp_path, capsys, text, message):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    assert verify.main([str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("Refused: ")
    assert err.count("\n") == 1


def test_a_missing_file_and_a_missing_argument(tmp_path, capsys):
    assert verify.main([str(tmp_path / "none.json")]) == 1
    assert "Cannot read" in capsys.readouterr().err
    assert verify.main([]) == 2
    assert "Usage" in capsys.readouterr().err


def test_it_runs_by_itself_where_nothing_else_can_be_imported(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(small()))
    (tmp_path / "verify.py").write_bytes(HERE.read_bytes())
    code = (
        "import sys, runpy\n"
        "class Wall:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('numpy', 'discreet', 'scipy', 'numba'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        f"sys.argv = ['verify.py', {str(path)!r}]\n"
        f"runpy.run_path({str(tmp_path / 'verify.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Verified: (1, 0)-JDP of transitions, visits, rewards of 4 states"
    )


@pytest.mark.parametrize("x", [Fraction(n, 7) for n in (-900, -61, -1, 0, 3, 50, 700)])
def test_exponentials_and_normals_are_enclosed(x):
    low, high = verify.exp(x)
    assert 0 <= low < high
    if abs(x) < 100:
        assert math.isclose(low / verify.ONE, math.exp(x), rel_tol=1e-13)
        assert (high - low) * 10**30 <= high
    phi = verify.normal(x / 10)
    assert 0 <= phi[1] - phi[0] <= verify.ONE >> 200
    assert math.isclose(phi[0] / verify.ONE, math.erfc(-x / 10 / math.sqrt(2)) / 2, rel_tol=1e-12)


def test_pi():
    assert verify.PI[0] < verify.PI[1]
    assert math.isclose(verify.PI[0] / verify.ONE, math.pi, rel_tol=1e-15)
    assert verify.PI[1] - verify.PI[0] < verify.ONE >> 230


def test_products_are_rounded_up():
    one, bits = 1 << 64, 64
    found = verify.multiply([one // 3, one // 2], [one // 7, one], bits, 1)
    exact = [Fraction(one // 3) * (one // 7), one // 3 * one + Fraction(one // 2) * (one // 7)]
    for value, truth in zip(found, [e / one for e in exact], strict=False):
        assert truth <= value <= truth + 1


LAYERED = {
    "noise": {"name": "layered-gaussian", "count_sigma": "20", "loss_sigma": "20000"},
    "release": release("local layered continual", "gaussian", feedback="bandit", widths=[1] * 7),
    "method": {"name": "summed-counts", "bits": 128, "cut": "1e-18"},
}
MANY = {"horizon": 10**7}
FLIPS = release("local continual", "randomized-response", **MANY)
LONG = "1" + "0" * 898 + "1/3" + "0" * 899


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {
                "release": release(mechanism="gaussian"),
                "noise": {"name": "discrete-gaussian", "sigma": "1e-60"},
                "method": {"name": "sum"},
            },
            "1e-9",
        ),
        (
            {
                "release": release(mechanism="gaussian", **MANY),
                "noise": {"name": "discrete-gaussian", "sigma": "1e-9"},
                "method": {"name": "sum"},
            },
            "too little noise",
        ),
        (LAYERED | {"noise": LAYERED["noise"] | {"loss_sigma": "1e-60"}}, "loss_sigma from"),
        (LAYERED | {"method": LAYERED["method"] | {"cut": "-1"}}, "cut > 0"),
        (
            {
                "noise": BITS["noise"] | {"trials": 400, "probability": "1e-21"},
                "method": BITS["method"] | {"bits": 32},
                "release": BITS["release"],
            },
            "bits are too few",
        ),
        ({k: BITS[k] for k in ("noise", "release")} | {"method": BITS["method"] | {"cut":
        "1e-999"}},
         "400 digits"),
        ({"noise": {"name": "randomized-response", "flip": LONG}, "release": FLIPS}, "100 digits"),
        ({"noise": {"name": "randomized-response", "flip": "1/3"}, "release": FLIPS}, "Recomputed"),
        ({"epsilon": "5001"}, "5000 at most"),
    ],
)  # fmt: skip
def test_numbers_out_of_reach_are_refused(changes, message):
    with pytest.raises(verify.Refused, match=message):
        verify.check(small(delta="1/1000000", bound="1/1000000") | changes)


def test_work_is_bounded(monkeypatch):
    monkeypatch.setattr(verify, "WORK", 10**5)
    with pytest.raises(verify.Refused, match="more than the 100,000 steps"):
        verify.check(BITS | {"release": BITS["release"] | MANY})
    assert verify.BUDGET.left == math.inf


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, RecursionError, MemoryError])
def test_what_cannot_be_computed_is_refused(monkeypatch, error):
    def fail(entry):
        raise error

    monkeypatch.setitem(
        verify.NOISES, "discrete-laplace", (fail, *verify.NOISES["discrete-laplace"][1:])
    )
    with pytest.raises(verify.Refused, match=error.__name__):
        verify.check(small())


def test_what_was_proven_is_printed_in_one_sentence(tmp_path, capsys):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(small()))
    assert verify.main([str(path)]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == (
        "Verified: (1, 0)-JDP of transitions, visits, rewards of 4 states, 2 actions, 6 steps, in "
        "a batch of any size, 1 participation per person, by the central mechanism laplace with "
        "discrete-laplace noise of scale 36."
    )
    assert "  one user moves +1 x 36 times" in lines
    assert lines[-1].startswith("Not covered: that what runs is this release")


@pytest.mark.parametrize(("base", "times"), [(Fraction(3, 2), 37), (Fraction(1001, 1000), 999)])
def test_powers_are_rounded_up(base, times):
    exact = base**times * verify.ONE
    assert exact <= verify.power(base, times) <= exact * (1 + Fraction(1, 10**60))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 3), "0.333333334"),
        (Fraction(1, 4), "0.25"),
        (Fraction(1, 10**7) + Fraction(1, 10**30), "1.00000001e-07"),
        (Fraction(1, 10**400), "1E-400"),
        (Fraction(0), "0"),
    ],
)
def test_a_bound_is_never_printed_smaller_than_it_is(value, text):
    assert verify.above(value) == text
