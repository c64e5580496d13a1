"""Bounds of every noise: against brute force, against golden values, and against less noise."""

import itertools
import math
from fractions import Fraction

import pytest

pytest.importorskip("flint")

from discreet.errors import UnsupportedError
from discreet.mdp.shape import Shape
from discreet.privacy import Central, Local, Shuffle
from discreet.privacy.certificates.distributions import (
    BinomialBits,
    GaussianGrid,
    GaussianMoves,
    HistogramNoise,
    PiledGaussian,
    PoissonNoise,
    TableNoise,
)
from discreet.privacy.certificates.document import (
    Claim,
    certify,
    certify_claim,
    claim_of,
    claimed,
    verify,
)
from helpers.calibrating import calibrated
from helpers.certificates import recomputed
from helpers.refutations import binomial_refutation, gaussian_refutation

HALF, MILLION = Fraction(1, 2), Fraction(1, 10**6)
SHAPE = Shape(states=4, actions=2, horizon=6)


def silent(_):
    pass


def stick(pmf, shifts, epsilon):
    """Delta of independent shifts of one distribution {value: probability}, by enumeration."""
    total = 0.0
    for outcome in itertools.product(pmf, repeat=len(shifts)):
        p = math.prod(pmf[x] for x in outcome)
        q = math.prod(pmf.get(x - s, 0.0) for x, s in zip(outcome, shifts, strict=True))
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


def gaussian(sigma):
    values = range(-math.ceil(10 * sigma), math.ceil(10 * sigma) + 1)
    weights = {x: math.exp(-0.5 * (x / sigma) ** 2) for x in values}
    whole = math.fsum(weights.values())
    return {x: w / whole for x, w in weights.items()}


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("probability", [HALF, Fraction(1, 5)])
def test_binomial_agrees_with_enumeration(probability, ups, downs):
    n, p = 12, float(probability)
    pmf = {x: math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(n + 1)}
    noise = BinomialBits(trials=n, probability=probability, ups=ups, downs=downs)
    for epsilon in (0.3, 1.5):
        shifts = [1] * ups + [-1] * downs
        truth = max(stick(pmf, [s * d for s in shifts], epsilon) for d in (1, -1))
        bound, _ = noise.bound(Fraction(epsilon), Fraction(truth) * 2, silent)
        assert truth <= float(bound) * (1 + 1e-12)
        assert float(bound) <= truth * 1.01


@pytest.mark.parametrize(("ups", "downs"), [(1, 0), (1, 1), (2, 1)])
def test_poisson_agrees_with_enumeration(ups, downs):
    pmf = {x: math.exp(-4.5) * 4.5**x / math.factorial(x) for x in range(45)}
    noise = PoissonNoise(mean=Fraction(9, 2), ups=ups, downs=downs)
    shifts = [1] * ups + [-1] * downs
    truth = max(stick(pmf, [s * d for s in shifts], 1.5) for d in (1, -1))
    bound, _ = noise.bound(Fraction(3, 2), Fraction(truth) * 2, silent)
    assert truth <= float(bound) * (1 + 1e-9)
    assert float(bound) <= truth * 1.01


def one_class(trials, p):
    """(P, Q) of (y_a, y_b) when a user moves from a to b among ``trials`` messages."""
    out = {}
    for a in range(trials + 1):
        for b in range(trials + 1 - a):
            chance = math.comb(trials, a) * math.comb(trials - a, b) * p ** (a + b)
            chance *= (1 - 2 * p) ** (trials - a - b)
            for world, view in enumerate(((a + 1, b), (a, b + 1))):
                out.setdefault(view, [0.0, 0.0])[world] += chance
    return list(out.values())


@pytest.mark.parametrize(
    "kinds",
    [((8, Fraction(1, 3), 1),), ((6, HALF, 2),), ((5, Fraction(1, 4), 1), (7, Fraction(1, 5), 1))],
)
def test_classes_agree_with_enumeration(kinds):
    noise = HistogramNoise(kinds=kinds)
    pairs = [(1.0, 1.0)]
    for trials, probability, times in kinds:
        for _ in range(times):
            one = one_class(trials, float(probability))
            pairs = [(p * s, q * t) for (p, q), (s, t) in itertools.product(pairs, one)]
    for epsilon in (0.3, 1.5):
        truth = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)
        bound, _ = noise.bound(Fraction(epsilon), Fraction(truth) * 2, silent)
        assert truth <= float(bound) * (1 + 1e-12)
        assert float(bound) <= truth * 1.01


@pytest.mark.parametrize(
    ("mean", "groups", "epsilon", "users", "grid"),
    [("393.71", 11, 1, 20_000, 11), ("110.62", 11, 2, 20_000, 10), ("322.523", 9, 1, 5_000, 10)],
)
def test_golden_means_of_histograms_are_certified_and_nearly_least(
    mean, groups, epsilon, users, grid
):
    base = 1 - Fraction(1, 2**grid)

    def ratio(noise):
        noise = HistogramNoise(kinds=((users, noise / users, groups),))
        return noise.on_grid(Fraction(epsilon), MILLION, base) / MILLION

    assert Fraction(99, 100) < ratio(Fraction(mean)) <= 1
    assert ratio(Fraction(mean) * Fraction(998, 1000)) > 1


def again(certificate):
    """The verifier's bound for these moves."""
    return recomputed(certificate.to_dict(), certificate.claim.noise.moves())


def test_the_verifier_finds_the_bound_of_classes_again():
    noise = HistogramNoise(kinds=((2_000, Fraction(1, 100), 2), (500, Fraction(1, 24), 1)))
    claim = Claim(noise=noise, epsilon=Fraction(2), delta=Fraction(1, 100), release={})
    certificate = certify_claim(claim, check=False)
    assert certificate.holds
    found = again(certificate)
    assert certificate.bound * Fraction(999_999, 10**6) < found <= certificate.bound


def test_the_verifier_counts_empty_cells():
    """At a large epsilon delta is the probability that nothing falls into the other cell."""
    noise = HistogramNoise(kinds=((8, Fraction(1, 4), 1),))
    empty = Fraction(3, 4) ** 8
    claim = Claim(noise=noise, epsilon=Fraction(20), delta=Fraction(1, 9), release={})
    assert empty <= again(certify_claim(claim, check=False)) <= empty * Fraction(1001, 1000)


@pytest.mark.parametrize("epsilon", [4, 5, 6, 8, 20])
@pytest.mark.parametrize("mean", ["4.5", "11.4093", "17.7794"])
def test_the_verifier_finds_the_bound_of_little_noise_again(mean, epsilon):
    """S=3, A=2, H=3: empty cells have a mass that no rounding hides, in eight moves each way."""
    noise = PoissonNoise(mean=Fraction(mean), ups=8, downs=8)
    claim = Claim(noise=noise, epsilon=Fraction(epsilon), delta=Fraction(1, 6), release={})
    certificate = certify_claim(claim, check=False)
    assert certificate.holds
    found = again(certificate)
    assert certificate.bound - claim.delta / 10**8 < found <= certificate.bound
    filled = 1 - math.exp(-float(noise.mean))
    if epsilon == 20:  # nearly all of delta: somebody is alone in one of eight cells
        assert 0.999 * (1 - filled**8) < float(found) < 1.1 * (1 - filled**8)


def test_the_limit_of_classes_needs_no_batch():
    noise = PoissonNoise(mean=Fraction("1393.03"), ups=39, downs=39)
    certificate = certify_claim(
        Claim(noise=noise, epsilon=Fraction(1), delta=MILLION, release={}), check=False
    )
    assert certificate.holds and certificate.ratio > 0.99


@pytest.mark.parametrize(("weights", "draws"), [((1, 3, 7, 3, 1), 1), ((8, 3, 1), 3)])
def test_table_agrees_with_enumeration(weights, draws):
    pmf = {}
    for outcome in itertools.product(enumerate(weights), repeat=draws):
        value = sum(x for x, _ in outcome)
        pmf[value] = pmf.get(value, 0.0) + math.prod(w / sum(weights) for _, w in outcome)
    noise = TableNoise(weights=weights, ups=2, downs=1, draws=draws)
    truth = max(stick(pmf, shifts, 2.0) for shifts in ([1, 1, -1], [-1, -1, 1]))
    bound, _ = noise.bound(Fraction(2), Fraction(1, 2), silent)
    assert truth <= float(bound) * (1 + 1e-12)
    assert float(bound) <= truth * 1.01


@pytest.mark.parametrize("sigma", [0.6, 1.7, 3.0])
@pytest.mark.parametrize(("shift", "times"), [(1, 1), (1, 2), (2, 2)])
def test_gaussian_agrees_with_enumeration(sigma, shift, times):
    noise = GaussianMoves(sigma=Fraction(sigma), times=times, shift=shift)
    for epsilon in (0.5, 2.0):
        truth = stick(gaussian(sigma), [shift] * times, epsilon)
        bound, _ = noise.bound(Fraction(epsilon), Fraction(1, 10**6), silent)
        assert truth <= float(bound) * (1 + 1e-9)
        assert float(bound) <= truth * (1 + 1e-6) + 1e-18


def test_piled_moves_cover_every_vector():
    sigma, total, largest, epsilon = 3.0, 4, 2, 1.0
    noise = gaussian(sigma)
    bound, method = PiledGaussian(sigma=Fraction(sigma), total=total, largest=largest).bound(
        Fraction(epsilon), Fraction(1, 10), silent
    )
    vectors = [(1,), (2,), (1, 1), (1, 2), (2, 2), (1, 1, 1)]
    worst = max(stick(noise, v, epsilon) for v in vectors)
    assert worst == stick(noise, (2, 2), epsilon)
    assert worst <= float(bound) * (1 + 1e-9)
    assert float(bound) <= worst * 1.01
    assert method["small_norms"] < total * largest


def test_a_constant_hides_nothing():
    noise = TableNoise(weights=(1,), ups=1, downs=0)
    claim = Claim(noise=noise, epsilon=Fraction(1), delta=Fraction(1, 2), release={})
    certificate = certify_claim(claim)
    assert not certificate.holds
    assert certificate.bound == 1


def test_the_closed_form_agrees_with_the_sum():
    from discreet.privacy.certificates.arithmetic import (
        PRECISION,
        Shifted,
        at_precision,
        closed_form,
        lattice_sum,
    )

    @at_precision(PRECISION)
    def both(sigma):
        shifted = Shifted(sigma=Fraction(sigma), norm=36, cells=36)
        return float(closed_form(shifted, Fraction(1))), float(lattice_sum(shifted, Fraction(1)))

    rough, exact = both(25)
    assert exact <= rough <= exact * 1.01
    rough, exact = both(1000)
    assert exact <= rough <= exact + 1e-40  # a tiny delta: both are far in the tail


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
@pytest.mark.parametrize(
    ("trust", "options", "users"),
    [
        (Central(epsilon=1, delta=1e-6, mechanism="gaussian"), {}, None),
        (Central(epsilon=1, delta=1e-6, mechanism="gaussian"), {"statistics": ("visits",)}, None),
        (Central(epsilon=1, delta=1e-6, mechanism="toeplitz"), {"episodes": 20_000}, None),
        (Local(epsilon=1, delta=1e-6, mechanism="gaussian"), {}, None),
        (
            Local(epsilon=1, delta=1e-6, mechanism="gaussian"),
            {"episodes": 100, "stationary": True},
            None,
        ),
        (Shuffle(epsilon=1, delta=1e-6, mechanism="bits"), {}, 20_000),
        (Shuffle(epsilon=1, delta=1e-6, honest=0.8, mechanism="bits"), {}, 1000),
    ],
    ids=lambda value: getattr(value, "mechanism", None),
)
def test_golden_plans_are_certified_and_checked(trust, options, users, delta):
    from dataclasses import replace

    more = {"schedule": "continual"} if "episodes" in options else {}
    shape = SHAPE if users is None else Shape(states=2, actions=2, horizon=2)
    plan = calibrated(replace(trust, delta=delta), shape, **options, **more)
    certificate = certify(plan, users=users)
    assert certificate.holds
    assert 0.9 < certificate.ratio <= 1
    assert certificate.claim.delta == claimed(delta)


@pytest.mark.parametrize("mechanism", ["laplace", "randomized-response", "one-step"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3])
def test_pure_epsilons_hold_exactly(mechanism, epsilon):
    plan = Local(epsilon=epsilon, mechanism=mechanism).calibrate(SHAPE)
    certificate = certify(plan)
    assert certificate.holds
    assert certificate.bound == 0
    tighter = Claim(
        noise=certificate.claim.noise,
        epsilon=certificate.claim.epsilon * (1 - Fraction(1, 10**10)),
        delta=Fraction(0),
        release={},
    )
    assert not certify_claim(tighter).holds


def test_one_fair_bit_less_is_refuted():
    shape = Shape(states=2, actions=2, horizon=2)
    plan = Shuffle(epsilon=1, delta=1e-6, mechanism="bits").calibrate(shape, statistics=("visits",))
    claim = claim_of(plan, users=1)
    noise = claim.noise
    assert noise.probability == HALF  # one user: all bits are fair
    assert certify_claim(claim, check=False).holds

    def low(trials):
        return binomial_refutation(trials, noise.ups, noise.downs, claim.epsilon, fineness=250)

    assert low(noise.trials - 1) > claim.delta >= low(noise.trials)


@pytest.mark.parametrize("factor", [0.5, 0.999])
def test_less_gaussian_noise_is_refuted(factor):
    claim = claim_of(Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(SHAPE))
    sigma = claim.noise.sigma * Fraction(factor)
    assert gaussian_refutation(sigma, claim.noise.times, claim.epsilon) > claim.delta
    weaker = Claim(
        noise=GaussianMoves(sigma=sigma, times=claim.noise.times),
        epsilon=claim.epsilon,
        delta=claim.delta,
        release={},
    )
    assert not certify_claim(weaker).holds


def test_large_epsilon_on_a_grid_goes_through_concentrated_privacy():
    coefficients = [2**10, 2**9]
    noise = GaussianGrid(
        sigma=Fraction(1200),
        length=2,
        encoder=tuple(coefficients),
        columns=(1, 1),
        squares=4,
        cells=4,
    )
    bound, method = noise.bound(Fraction(20), Fraction(1, 10**6), silent)
    assert method["name"] == "concentrated"
    assert bound < Fraction(1, 10**6)


def test_the_longest_column_is_that_of_the_factorisation():
    stream = Central(epsilon=1, delta=1e-6, mechanism="toeplitz").calibrate_stream(
        SHAPE, episodes=50, stationary=True
    )
    noise, factors = claim_of(stream).noise, stream.noise.factors
    assert noise.squared_norm == factors.column_square() * 4**factors.grid.bits
    assert (noise.squares, noise.cells, noise.length) == (216, 36, 50)


def test_of_a_square_root_nothing_is_said_that_is_not_computed():
    again = Central(epsilon=1, delta=1e-6, mechanism="toeplitz", participations=5)
    stream = again.calibrate_stream(SHAPE, episodes=50)
    with pytest.raises(UnsupportedError, match="cover one participation, not 5"):
        claim_of(stream)
    alone = Central(epsilon=1, delta=1e-6, mechanism="toeplitz")
    with pytest.raises(UnsupportedError, match="at most 300,000 episodes, got 300,001"):
        claim_of(alone.calibrate_stream(SHAPE, episodes=300_001))


def test_epsilon_and_delta_are_the_smaller_of_decimal_and_double():
    assert claimed(0.1) == Fraction(1, 10) < Fraction(0.1)
    assert claimed(1e-6) == Fraction(1e-6) < Fraction(1, 10**6)


def test_what_is_not_covered_is_said():
    from discreet.privacy import NoPrivacy

    with pytest.raises(ValueError, match="guarantees nothing"):
        certify(NoPrivacy().calibrate(SHAPE))
    with pytest.raises(ValueError, match="give users="):
        certify(Shuffle(epsilon=1, delta=1e-6, mechanism="bits").calibrate(SHAPE))
    with pytest.warns(UserWarning):
        printed = Local(epsilon=1, mechanism="laplace", calibration="paper").calibrate(SHAPE)
    with pytest.raises(ValueError, match="Printed constants"):
        certify(printed)


def test_files_are_written_read_and_refused(tmp_path):
    certificate = certify(Central(epsilon=1, delta=1e-6, mechanism="gaussian").calibrate(SHAPE))
    path = tmp_path / "certificate.json"
    certificate.write(path)
    assert verify(path) <= certificate.bound
    assert verify(certificate) == verify(certificate.to_dict())
    path.write_text(path.read_text().replace('"horizon": 6', '"horizon": 5'))
    with pytest.raises(ValueError, match="edited"):
        verify(path)


def test_a_claim_that_is_not_proven_has_no_file(tmp_path):
    noise = GaussianMoves(sigma=Fraction(1), times=36)
    claim = Claim(noise=noise, epsilon=Fraction(1), delta=Fraction(1, 10**6), release={})
    certificate = certify_claim(claim)
    assert "Not certified" in certificate.sentence()
    with pytest.raises(ValueError, match="Not certified"):
        certificate.write(tmp_path / "certificate.json")
