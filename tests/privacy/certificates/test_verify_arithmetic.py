"""The verifier's integers: every enclosure holds, every mass is rounded up, nothing gets lost."""

import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from discreet.privacy.certificates import verify
from discreet.privacy.certificates.verify import ONE
from helpers import curves
from helpers.certificates import recomputed, release
from helpers.properties import given, settings, st

pytestmark = pytest.mark.core
SMALL = st.fractions(min_value=-40, max_value=40, max_denominator=1000)
UNIT = st.fractions(min_value=0, max_value=1, max_denominator=1000)
WEIGHTS = st.lists(st.integers(1, 30), min_size=2, max_size=5)
BITS = 96
SCALE = 1 << BITS
GRID = Fraction(31, 32)


def decimal_exp(x, digits=120):
    """e^x by another hand: the decimals of the standard library."""
    with localcontext() as context:
        context.prec = digits
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def near(ends, truth, tolerance=Fraction(1, 10**60)):
    """The truth lies between both ends, up to the error of the oracle, and they are close."""
    low, high = (Fraction(end, ONE) for end in ends)
    slack = tolerance * (1 + abs(truth))
    return low - slack <= truth <= high + slack and high - low <= slack


# --- numbers -------------------------------------------------------------------------------------


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6))
def test_quotients_are_rounded_up(a, b):
    assert Fraction(a, b) <= verify.up(a, b) < Fraction(a, b) + 1


@given(SMALL)
def test_exponentials_against_decimals(x):
    assert near(verify.exp(x), decimal_exp(x), Fraction(1, 10**58))


@given(SMALL, SMALL)
def test_exponentials_multiply(x, y):
    (a, b), (c, d) = verify.exp(x), verify.exp(y)
    low, high = verify.exp(x + y)
    assert Fraction(a * c, ONE) <= high
    assert Fraction(b * d, ONE) >= low


@given(SMALL)
def test_exponentials_grow(x):
    more = x + Fraction(1, 10**6)
    assert verify.exp(x)[0] < verify.exp(more)[0]
    assert verify.exp(x)[1] < verify.exp(more)[1]


@pytest.mark.parametrize("x", [-178, -177, -1, 0, 1, 700, 5000])
def test_exponentials_at_the_ends(x):
    low, high = verify.exp(Fraction(x))
    assert 0 <= low <= high
    if x == 0:
        assert low == ONE
    if x >= 0:
        assert high - low <= high >> 200


def test_exponentials_beyond_the_ends():
    assert verify.exp(Fraction(-179)) == (0, 1)
    assert verify.exp(Fraction(-(10**9))) == (0, 1)
    with pytest.raises(verify.Refused, match="too large"):
        verify.exp(Fraction(5001))


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**6))
def test_roots(x):
    low, high = (Fraction(end, ONE) for end in verify.root(x))
    assert low**2 <= x < high**2
    assert high - low == Fraction(1, ONE)


@given(st.fractions(min_value=-12, max_value=12, max_denominator=100))
def test_the_normal_density_is_rounded_up(x):
    truth = decimal_exp(-x * x / 2)
    found = Fraction(verify.density(x), ONE)
    root = Fraction(verify.ROOT_TWO_PI[0], ONE)
    assert truth / root <= found <= truth / root + Fraction(1, 10**70)


def test_root_two_pi():
    low, high = (Fraction(end, ONE) for end in verify.ROOT_TWO_PI)
    pi = [Fraction(end, ONE) for end in verify.PI]
    assert low**2 <= 2 * pi[1] and high**2 >= 2 * pi[0]
    assert high - low < Fraction(1, 10**70)
    assert Fraction(verify.PI_SQUARED) <= pi[0] ** 2


def test_pi_to_fifty_digits():
    known = Fraction("3.14159265358979323846264338327950288419716939937510")
    low, high = (Fraction(end, ONE) for end in verify.PI)
    assert low - Fraction(1, 10**50) <= known <= high
    assert abs(low - known) < Fraction(1, 10**49)


@given(st.fractions(min_value=-18, max_value=18, max_denominator=50))
def test_the_normal_distribution_function_and_its_mirror(x):
    low, high = verify.normal(x)
    other = verify.normal(-x)
    assert low <= high
    assert low + other[0] <= ONE <= high + other[1]
    assert math.isclose(low / ONE, math.erfc(-x / math.sqrt(2)) / 2, rel_tol=1e-11, abs_tol=1e-60)


def test_the_normal_distribution_function_far_out():
    assert verify.normal(Fraction(20)) == (ONE - 1, ONE)
    assert verify.normal(Fraction(-20)) == (0, 1)
    ends = [verify.normal(Fraction(x, 3)) for x in range(-30, 31)]
    assert all(one[1] < other[0] for one, other in itertools.pairwise(ends))


@given(st.fractions(min_value=1, max_value=4, max_denominator=50), st.integers(0, 60))
def test_powers_are_rounded_up_a_little(base, times):
    truth = base**times
    found = Fraction(verify.power(base, times), ONE)
    assert truth <= found <= truth * (1 + Fraction(1, 10**60))


def test_powers_beyond_every_exponential_may_stay():
    assert verify.power(Fraction(2), 10**7) == ONE << 8000
    assert verify.exp(Fraction(5000))[1] < ONE << 8000


# --- masses --------------------------------------------------------------------------------------


@given(WEIGHTS, WEIGHTS)
def test_products_of_masses(a, b):
    """Against schoolbook multiplication, rounded up and rounded down."""
    exact = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            exact[i + j] += Fraction(x * y, 16)
    up, down = (verify.multiply(a, b, 4, more) for more in (1, 0))
    assert len(up) == len(down) == len(exact)
    assert all(e <= m <= e + 1 for e, m in zip(exact, up, strict=True))
    assert all(e - 1 < m <= e for e, m in zip(exact, down, strict=True))


def test_products_of_very_different_masses():
    huge, tiny = [1 << 120, 1], [1, 1 << 120]
    assert verify.multiply(huge, tiny, 0, 0) == [1 << 120, (1 << 240) + 1, 1 << 120]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.integers(0, 30), st.integers(0, 5))
def test_what_is_cropped_is_lost_and_nothing_else(masses, cut, lost):
    first, kept, after = verify.crop((3, masses, lost), cut)
    assert sum(kept) + after == sum(masses) + lost
    start = first - 3
    assert masses[start : start + len(kept)] == kept
    assert kept
    assert sum(masses[:start]) <= cut
    assert sum(masses[start + len(kept) :]) <= cut


@pytest.mark.parametrize("times", range(1, 8))
def test_repeated_moves_against_one_by_one(times):
    one = (-1, [SCALE // 4, SCALE // 2, SCALE // 4], 0)
    first, masses, lost = verify.repeat(one, times, BITS, 0)
    assert (first, lost) == (-times, 0)
    for i, mass in enumerate(masses):
        truth = Fraction(math.comb(2 * times, i), 4**times)
        assert truth <= Fraction(mass, SCALE) <= truth + Fraction(100, SCALE)


def test_what_both_moves_have_lost_adds_up():
    one = (0, [SCALE // 2], 7)
    assert verify.compose(one, (5, [SCALE], 4), BITS, 0)[::2] == (5, 11)


@given(UNIT, UNIT)
def test_a_move_is_lost_if_one_of_its_parts_is(a, b):
    """Independent parts: a + b - ab, rounded up by a unit or two, and never below it."""
    parts = [(0, [SCALE], math.ceil(share * SCALE)) for share in (a, b)]
    lost = Fraction(verify.compose(*parts, BITS, 0)[2], SCALE)
    assert 0 <= lost - (a + b - a * b) <= Fraction(3, SCALE)


def test_what_is_lost_more_than_whole_stays_so():
    parts = [(0, [SCALE], SCALE + more) for more in (5, 9)]
    assert verify.compose(*parts, BITS, 0)[2] >= SCALE + 9


@pytest.mark.parametrize(("first", "last"), [(0, 6), (-5, 3), (2, 4), (-3, -1)])
def test_powers_of_the_grid_are_enclosed(first, last):
    found = verify.powers(GRID, first, last, BITS)
    for i in range(first, last + 1):
        low, high = found[i]
        assert low <= GRID**i * SCALE <= high <= low + 40


# --- noise of many values ------------------------------------------------------------------------


def covers(noise, truth, *, waste=Fraction(1, 10**9)):
    """Every probability is bounded from above, and what is not listed as well."""
    first, masses, rest = noise
    listed = {first + i: Fraction(m, SCALE) for i, m in enumerate(masses)}
    assert all(truth.get(x, 0) <= mass for x, mass in listed.items())
    assert sum(listed.values()) <= 1 + waste
    beyond = sum(p for x, p in truth.items() if x not in listed)
    assert beyond <= Fraction(rest, SCALE) + Fraction(1, 10**25)


@pytest.mark.parametrize("cut", ["1e-20", "1e-6", "1/1000"])
@pytest.mark.parametrize(
    ("trials", "probability"), [(1, "1/2"), (30, "1/2"), (60, "1/7"), (60, "9/10"), (5, "99/100")]
)
def test_binomials_are_bounded(trials, probability, cut):
    noise = verify.binomial(trials, Fraction(probability), BITS, Fraction(cut))
    covers(noise, curves.exact_binomial(trials, Fraction(probability)), waste=Fraction(1, 100))


def test_a_coarse_cut_is_counted():
    first, masses, rest = verify.binomial(400, Fraction(1, 2), BITS, Fraction(1, 100))
    assert len(masses) < 401
    assert Fraction(rest, SCALE) > Fraction(1, 1000)
    assert first > 0


def test_tails_that_do_not_fall_are_refused():
    with pytest.raises(verify.Refused, match="too coarse"):
        verify._geometric(1, 5, 5)


@pytest.mark.parametrize("sigma", ["1/2", "1", "9/4"])
@pytest.mark.parametrize("cut", ["1e-20", "1e-3"])
def test_discrete_gaussians_are_bounded(sigma, cut):
    noise = verify.gaussian_masses(Fraction(sigma) ** 2, BITS, Fraction(cut))
    covers(noise, curves.exact_gaussian(Fraction(sigma)), waste=Fraction(1, 100))


@given(st.integers(1, 1000), st.integers(1, 50), st.integers(51, 100))
def test_geometric_tails(last, number, over):
    truth = Fraction(last) * Fraction(number, over) / (1 - Fraction(number, over))
    assert truth <= verify._geometric(last, number, over) < truth + 1


# --- connecting ----------------------------------------------------------------------------------


def ratios(first, second):
    """Q/P of each value as a pair of integers."""

    def ratio(x):
        found = Fraction(second.get(x, 0)) / first[x]
        return found.numerator, found.denominator

    return ratio


def noise_of(distribution):
    first, last = min(distribution), max(distribution)
    masses = [
        verify.up(p.numerator * SCALE, p.denominator)
        for p in (Fraction(distribution.get(x, 0)) for x in range(first, last + 1))
    ]
    return first, masses, 0


def dotted(first, second, base=GRID):
    return verify.dots(*verify.atoms(noise_of(first), ratios(first, second)), base, BITS)


@given(WEIGHTS, st.integers(-2, 2).filter(bool))
def test_values_of_infinite_loss_are_lost(weights, shift):
    noise = curves.exact_table(weights)
    there = curves.moved(noise, shift)
    finite, lost = verify.atoms(noise_of(noise), ratios(noise, there))
    assert len(finite) == sum(x in there for x in noise)
    unseen = sum(p for x, p in noise.items() if x not in there)
    assert unseen <= Fraction(lost, SCALE) <= unseen + Fraction(10, SCALE)


@given(WEIGHTS, st.randoms(use_true_random=False))
def test_dots_keep_both_masses(weights, random):
    rival = weights.copy()
    random.shuffle(rival)
    first, masses, lost = dotted(curves.exact_table(weights), curves.exact_table(rival))
    under_p = Fraction(sum(masses), SCALE)
    under_q = sum(Fraction(m, SCALE) * GRID ** (first + i) for i, m in enumerate(masses))
    close = Fraction(1, 10**20)
    assert lost == 0
    assert 1 <= under_p <= 1 + close
    assert abs(under_q - 1) <= close


@given(WEIGHTS, st.randoms(use_true_random=False), st.integers(0, 8))
def test_no_delta_falls_below_the_truth(weights, random, quarter):
    rival = weights.copy()
    random.shuffle(rival)
    first, second = curves.exact_table(weights), curves.exact_table(rival)
    epsilon = Fraction(quarter, 4)
    found = verify.hockey_stick(dotted(first, second), epsilon, GRID, BITS)
    assert Fraction(found, SCALE) >= curves.stick(first, second, curves.growth_of(epsilon))


@settings(max_examples=15)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=4), st.integers(2, 3), st.integers(0, 6))
def test_no_composed_delta_falls_below_the_truth(weights, times, half):
    noise = curves.exact_table(weights)
    epsilon = Fraction(half, 2)
    many = verify.repeat(dotted(noise, curves.moved(noise, 1)), times, BITS, 0)
    # What one move has lost is lost whenever it happens: the rest of the masses says how often.
    missing = SCALE - sum(many[1])
    found = verify.hockey_stick(many, epsilon, GRID, BITS)
    truth = curves.delta_of_moves(noise, [1] * times, float(epsilon))
    assert Fraction(found, SCALE) >= truth - Fraction(1, 10**15)
    assert missing <= many[2] * times


def test_losses_just_above_the_grid_are_not_rounded_down():
    """Doubles cannot tell them from the grid point; the integers can."""
    for place in range(-9, 60):
        ratio = GRID**place * (1 - Fraction(1, 10**20))
        part = (SCALE, ratio.numerator, ratio.denominator)
        first, masses, _ = verify.dots([part], 0, GRID, BITS)
        under_q = sum(Fraction(m, SCALE) * GRID ** (first + i) for i, m in enumerate(masses))
        assert sum(masses) >= SCALE
        assert under_q <= ratio * (1 + Fraction(1, 10**24))


def test_nothing_in_common_is_lost_whole():
    assert verify.dots([], SCALE, GRID, BITS) == (0, [0], SCALE)
    assert verify.hockey_stick((0, [0], SCALE), Fraction(9), GRID, BITS) == SCALE


@pytest.mark.parametrize("epsilon", [0, 1, 3])
def test_delta_of_masses_on_the_grid(epsilon):
    masses = [SCALE // 4] * 4
    found = verify.hockey_stick((-40, masses, 5), Fraction(epsilon), GRID, BITS)
    assert found == 5  # negative losses cost nothing
    above = verify.hockey_stick((100, masses, 0), Fraction(epsilon), GRID, BITS)
    truth = sum(
        Fraction(1, 4) * max(0, 1 - curves.growth_of(epsilon) * GRID**i) for i in range(100, 104)
    )
    assert truth <= Fraction(above, SCALE) <= truth + Fraction(1, 10**14)


# --- Gaussian noise ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0", "1/2", "2"])
@pytest.mark.parametrize(("step", "norm"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_directions_of_gaussian_noise_against_their_distributions(step, norm, epsilon):
    sigma, epsilon = Fraction(3, 2), Fraction(epsilon)
    noise = curves.distribution_of_sum(curves.exact_gaussian(sigma, digits=30), norm)
    truth = sum(
        p * -Fraction(math.expm1(float(epsilon) - loss))
        for u, p in noise.items()
        if (loss := float((step**2 * norm - 2 * step * u) / (2 * sigma**2))) > epsilon
    )
    found = verify.shifted_delta(sigma**2, norm, step, epsilon)
    assert truth * (1 - Fraction(1, 10**12)) <= found <= truth * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("epsilon", ["1/3", "2"])
@pytest.mark.parametrize(("sigma", "norm", "step"), [(2, 1, 1), (3, 4, 1), (5, 2, 3)])
def test_sums_over_the_integers_are_not_below_the_truth_by_a_hair(sigma, norm, step, epsilon):
    """To fifty digits: the far tail, a part in 10^15, is there too."""
    epsilon, spread = Fraction(epsilon), Fraction(sigma * sigma * norm)
    top = math.ceil((Fraction(step * step * norm, 2) - epsilon * sigma**2) / step)
    truth = sum(
        decimal_exp(-u * u / (2 * spread)) * (1 - decimal_exp(epsilon - loss))
        for u in range(top - 25 * math.ceil(sigma * math.sqrt(norm)), top)
        if (loss := Fraction(step * step * norm - 2 * step * u, 2 * sigma**2)) > epsilon
    )
    root = Fraction(verify.root(spread)[1] * verify.ROOT_TWO_PI[1], ONE * ONE)
    found = verify.lattice_sum(Fraction(sigma * sigma), norm, step, epsilon)
    assert truth / root <= found <= truth / root * (1 + Fraction(1, 10**9))


def test_hardly_any_noise_proves_nothing():
    assert verify.lattice_sum(Fraction(1, 10**9), 1, 1, Fraction(1)) >= Fraction(99, 100)
    with pytest.raises(verify.Refused, match="too little noise"):
        verify.excess(Fraction(1, 10**9), 10**7)


@pytest.mark.parametrize("order", ["9/8", "2", "10"])
def test_concentrated_privacy_bounds_gaussian_noise(order):
    """zCDP of rho = 1/(2 sigma²) is no better than the truth."""
    sigma, epsilon = Fraction(2), Fraction(1)
    bound = verify.concentrated(1 / (2 * sigma**2), epsilon, Fraction(order))
    noise = curves.exact_gaussian(sigma)
    assert bound >= curves.stick(noise, curves.moved(noise, 1), curves.growth_of(1))


def test_orders_of_divergences():
    for order in (1, Fraction(1, 2)):
        with pytest.raises(verify.Refused, match="above 1"):
            verify.concentrated(Fraction(1), Fraction(1), Fraction(order))
    assert verify.concentrated(Fraction(10**6), Fraction(1), Fraction(2)) == 1


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-3/4", Fraction(-3, 4)), ("7.5e-6", Fraction(15, 2 * 10**6)), ("1E3", 1000)],
)
def test_exact_numbers(text, value):
    assert verify.rational(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1/2/3", "0x10", "1_000", "inf", "nan", "1e1000", "1/0", ".5", "٣", 3, None,
     True, 1.5, ["1"]],
)  # fmt: skip
def test_what_is_no_exact_number(text):
    with pytest.raises(verify.Refused, match="Expected an exact rational number"):
        verify.rational(text)


def test_numbers_of_too_many_digits():
    assert verify.rational("9" * 99, 100) > 0
    with pytest.raises(verify.Refused, match="at most 100 digits"):
        verify.rational("9" * 102, 100)


def test_a_digest_does_not_depend_on_the_order_of_fields():
    one, other = {"a": 1, "b": {"c": "ü", "d": 2}}, {"b": {"d": 2, "c": "ü"}, "a": 1}
    assert verify.digest(one) == verify.digest(other) == verify.digest(one | {"digest": "x"})
    assert verify.digest(one) != verify.digest(one | {"a": 2})


def test_unknown_things_are_quoted_in_one_short_line():
    said = verify.short("\x1b[2J\n" + "ü" * 100)
    assert said.isascii() and "\n" not in said and len(said) <= 40


LAPLACE = {
    "format": "discreet-certificate/1",
    "release": release(),
    "noise": {"name": "discrete-laplace", "scale": "73/2"},
    "epsilon": "1",
    "delta": "0",
    "method": {"name": "rational"},
    "bound": "0",
}


def test_what_is_proven_in_exact_numbers_and_for_a_person():
    found = verify.proven(LAPLACE, verify.check(LAPLACE))
    assert found["noise"] == {"name": "discrete-laplace", "scale": "73/2"}
    assert (found["epsilon"], found["delta"], found["recomputed"]) == ("1", "0", 0.0)
    assert found["release"] == release()
    lines = verify.report(json.loads(json.dumps(found)))
    assert lines[0].endswith("discrete-laplace noise of scale 73/2 (about 36.5).")
    assert "  one user moves +1 x 36 times" in lines


def test_long_tables_are_reported_by_their_digest():
    import hashlib

    weights = list(range(1, 200))
    expected = hashlib.sha256("".join(f"{w}\n" for w in weights).encode()).hexdigest()
    assert verify._read(weights) == f"(199 numbers of SHA-256 {expected})"
    assert verify._read([1, 2, 1]) == "[1, 2, 1]"


def test_the_norm_of_a_square_root_is_computed():
    data = {
        "format": "discreet-certificate/1",
        "noise": {
            "name": "gaussian-grid",
            "sigma": str(26 * 2**24),
            "length": 100,
            "encoder": [2**12] * 25 + [0] * 75,
            "columns": [819] * 100,  # 25 entries of 4096, times 819: just below 2^24
        },
        "release": release("central continual", "toeplitz"),
        "epsilon": "1",
        "delta": "1/1000000",
        "method": {"name": "analytic"},
        "bound": "1/1000000",
    }
    found = verify.proven(data, verify.check(data))
    assert "  one user moves squares 36, cells 36" in verify.report(found)
    with pytest.raises(verify.Refused, match="the release's episodes"):
        verify.check(data | {"noise": data["noise"] | {"length": 99}})
    last = {"columns": [819] * 99 + [4095]}  # of the last user one entry is ever released
    assert verify.check(data | {"noise": data["noise"] | last}) == verify.check(data)
    for changes, reason in (
        (data["noise"] | {"columns": [4095] + [819] * 99}, "Recomputed"),
        (data["noise"] | {"columns": [819] * 75 + [1200] + [819] * 24}, "Recomputed"),
        (data["noise"] | {"encoder": [2**12] * 50 + [0] * 50}, "Recomputed"),
        (data["noise"] | {"columns": [819] * 99}, "columns to be 100 integers"),
        (data["noise"] | {"columns": [819.0] * 100}, "columns to be 100 integers"),
        (data["noise"] | {"encoder": [2**12] * 24 + [-1] + [0] * 75}, "encoder to be 100"),
        (data["noise"] | {"squared_norm": 2**47}, "exactly the fields"),
    ):
        with pytest.raises(verify.Refused, match=reason):
            verify.check(data | {"noise": changes})


@pytest.mark.parametrize("units", [36, 37])
def test_laplace_moves_add_up_whatever_their_shifts(units):
    """36.5 units are allowed at epsilon 1."""
    moves = [{"shift": 2, "times": 10}, {"shift": -1, "times": units - 20}]
    if units == 36:
        assert recomputed(LAPLACE, moves) == 0
    else:
        with pytest.raises(verify.Refused, match="Recomputed"):
            recomputed(LAPLACE, moves)


def test_work_is_paid_for_before_it_is_done(monkeypatch):
    monkeypatch.setattr(verify.BUDGET, "left", 10.0)
    verify.spend(10)
    with pytest.raises(verify.Refused, match="steps that are allowed"):
        verify.spend(1)


def test_a_file_that_is_too_long_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(LAPLACE))
    assert verify.read(str(path)) == LAPLACE
    monkeypatch.setattr(verify, "LIMIT", 50)
    with pytest.raises(verify.Refused, match="more than 50 bytes"):
        verify.read(str(path))
