"""The certificate as a file: exact numbers, nothing changed, nothing unproven written."""

import copy
import json
from fractions import Fraction

import pytest

from discreet.errors import CalibrationError
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.certificates.document import (
    FORMAT,
    NOT_COVERED,
    Certificate,
    CertificateError,
    Claim,
    certify_claim,
    rounded,
    verify,
)
from helpers.certificates import release
from helpers.properties import given, st

MILLION = Fraction(1, 10**6)


def certificate(bound="1/2000000", delta=MILLION, noise=None, **changes):
    claim = Claim(
        noise=noise or {"name": "discrete-gaussian", "sigma": "51/2"},
        epsilon=Fraction(1),
        delta=Fraction(delta),
        release=release(mechanism="gaussian", **changes),
    )
    return Certificate(claim=claim, bound=Fraction(bound), method={"name": "sum"})


def leaves(data, path=()):
    """The places of all values that are no containers."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path


def folders(data, path=()):
    """The places of all objects."""
    if isinstance(data, dict):
        yield path
        for key, value in data.items():
            yield from folders(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from folders(value, (*path, index))


def at(data, path):
    for step in path:
        data = data[step]
    return data


def other(value):
    """Another value of the same kind, of the kind that a slip of the hand makes."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    try:
        return str(Fraction(value) + Fraction(1, 7))
    except ValueError:
        return value + "x"


@pytest.mark.parametrize("noise", sorted(verifier.NOISES))
def test_any_single_value_changed_is_refused(made, noise):
    places = list(leaves(made[noise]))
    assert len(places) >= 8
    for *path, last in places:
        data = copy.deepcopy(made[noise])
        at(data, path)[last] = other(at(data, path)[last])
        with pytest.raises(verifier.Refused, match=r"edited|Unknown format"):
            verifier.check(data)


@pytest.mark.parametrize("noise", sorted(verifier.NOISES))
def test_any_field_removed_or_added_is_refused(made, noise):
    for path in folders(made[noise]):
        for name in at(made[noise], path):
            data = copy.deepcopy(made[noise])
            del at(data, path)[name]
            if (*path, name) != ("digest",):  # the digest is optional
                with pytest.raises(verifier.Refused):
                    verifier.check(data)
        data = copy.deepcopy(made[noise])
        at(data, path)["extra"] = "1"
        with pytest.raises(verifier.Refused):
            verifier.check(data)


@pytest.mark.parametrize("noise", sorted(verifier.NOISES))
def test_a_digest_is_no_proof(made, noise):
    """Everything in the file may be resealed: a lower bound is still refused."""
    data = {key: value for key, value in made[noise].items() if key != "digest"}
    lower = Fraction(data["bound"]) * Fraction(999, 1000)
    if Fraction(data["bound"]) == 0:
        data["epsilon"] = str(Fraction(data["epsilon"]) / 4)
    else:
        data["bound"] = str(lower)
    with pytest.raises(verifier.Refused, match="Recomputed"):
        verifier.check(data | {"digest": verifier.digest(data)})


def test_what_the_file_says():
    data = certificate().to_dict()
    assert data.pop("digest") == verifier.digest(data)
    assert (data.pop("format"), data.pop("release")) == (FORMAT, release(mechanism="gaussian"))
    assert data.pop("noise") == {"name": "discrete-gaussian", "sigma": "51/2"}
    assert data.pop("method") == {"name": "sum"}
    assert data == {"epsilon": "1", "delta": "1/1000000", "bound": "1/2000000"}


def test_the_digest_covers_the_release_too():
    one, other_ = (certificate(states=n).to_dict() for n in (4, 5))
    assert one["digest"] != other_["digest"]


@pytest.mark.parametrize(
    ("bound", "delta", "holds", "ratio"),
    [("1/2000000", MILLION, True, 0.5), (MILLION, MILLION, True, 1.0), ("1/4", "1/8", False, 2.0)],
)
def test_a_claim_holds_up_to_its_delta(bound, delta, holds, ratio):
    found = certificate(bound, delta)
    assert (found.holds, found.ratio) == (holds, ratio)


def test_the_ratio_of_a_pure_claim_is_its_bound():
    noise = {"name": "discrete-laplace", "scale": "36"}
    assert certificate(0, 0, noise).ratio == 0.0
    assert certificate(0, 0, noise).holds
    assert certificate(1, 0, noise).ratio == 1.0
    assert not certificate(1, 0, noise).holds


def test_sentences():
    said = certificate().sentence()
    assert said == "delta(1) <= 5e-07 <= 1e-06 is proven for discrete-gaussian noise."
    assert "<= 0.333333334 <= 0.5 is" in certificate("1/3", "1/2").sentence()  # never less
    # What is refused by a hair is not said to be equal.
    near = certificate(Fraction(1, 8) + Fraction(1, 10**12), "1/8").sentence()
    assert "is 0.125000001, above 0.125;" in near
    said = certificate("1/4", "1/8").sentence()
    assert said.startswith("Not certified: the best bound on delta(1) is 0.25, above 0.125;")
    assert "too coarse" in said


def test_a_file_is_small_ascii_and_ends_with_a_line(tmp_path):
    path = tmp_path / "certificate.json"
    certificate().write(path)
    content = path.read_bytes()
    assert content.isascii()
    assert content.endswith(b"}\n")
    assert len(content) < 1000
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_not_proven_leaves_an_older_file_alone(tmp_path):
    path = tmp_path / "certificate.json"
    certificate().write(path)
    before = path.read_bytes()
    with pytest.raises(CertificateError, match="Not certified"):
        certificate("1/4", "1/8").write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_is_read_back_to_the_last_digit(tmp_path):
    claim = Claim(
        noise={"name": "randomized-response", "flip": "1/3"},
        epsilon=Fraction(3, 2),
        delta=Fraction(0),
        release=release("local continual", "randomized-response", horizon=1, statistics=["visits"]),
    )
    found = certify_claim(claim)
    path = tmp_path / "certificate.json"
    found.write(path)
    assert verifier.read(str(path)) == json.loads(json.dumps(found.to_dict()))
    assert verify(str(path)) == verify(path) == verify(found) == 0


def test_errors_are_those_of_calibration():
    assert issubclass(CertificateError, CalibrationError)
    with pytest.raises(CertificateError, match="edited"):
        verify(certificate().to_dict() | {"bound": "1/3000000"})


def test_what_is_not_covered_is_the_verifiers_own_list():
    assert NOT_COVERED is verifier.NOT_COVERED
    assert len(NOT_COVERED) == 2


POSITIVE = st.fractions(min_value=Fraction(1, 10**18), max_value=Fraction(1, 2))


@given(POSITIVE, st.fractions(min_value=1, max_value=3))
def test_a_rounded_bound_is_no_smaller_and_no_larger_than_delta(bound, more):
    delta = min(Fraction(1), bound * more)
    found = rounded(bound, delta)
    assert bound <= found <= delta
    assert found == delta or found <= bound * (1 + Fraction(1, 10**8))
    assert len(str(int(rounded(bound, Fraction(1)) * 10**40)).rstrip("0")) <= 10


@given(POSITIVE, POSITIVE)
def test_what_does_not_hold_is_left_as_it_is(one, more):
    assert rounded(one + more, one) == one + more
    assert rounded(Fraction(0), one) == 0
