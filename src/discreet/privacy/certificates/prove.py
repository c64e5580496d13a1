"""A method by which `verify.py` finds a bound on delta of at most what was claimed.

The bound is the verifier's own. Here floats choose grid, cut and order, and nothing has to be
believed of them: another choice gives another bound, and none that is too low.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from discreet._types import JsonObject, Plain
from discreet.privacy.certificates import verify

Method = dict[str, Plain]
Progress = Callable[[str], None]
_BITS = 128


def prove(claim: JsonObject, progress: Progress = lambda _: None) -> tuple[Fraction, Method]:
    """The first bound that is at most delta, or else the best one, and its method.

    Args:
        claim: a certificate without method and bound.
        progress: called with what is being computed.
    """
    delta = verify.rational(claim["delta"])
    best, chosen = Fraction(1), Method()
    for tried, method in enumerate(_methods(claim, delta)):
        progress(" ".join(str(value) for value in method.values()))
        before = best
        found = min(before, verify.recompute({**claim, "method": method, "bound": "0"}))
        if found < before or not chosen:
            best, chosen = found, method
        hopeless = found > delta * Fraction(3, 2) and found > before * Fraction(4, 5)
        stalled = tried > 3 and found > before * Fraction(99, 100)
        if best <= delta or ("base" in method and (hopeless or stalled)):
            break
    return best, chosen


def _methods(claim: JsonObject, delta: Fraction) -> Iterator[Method]:
    """What may be tried, in this order."""
    noise, epsilon = claim["noise"], verify.rational(claim["epsilon"])
    known = verify.NOISES[noise["name"]][2]
    tail: Method = {"bits": _BITS, "cut": _cut(delta)}
    if "sum" in known.split():
        little = verify.rational(noise["sigma"]) < Fraction(8, 5)
        yield {"name": "convolution", **tail} if little else {"name": "sum"}
    elif "summed-counts" in known:
        little = verify.rational(noise["count_sigma"]) < Fraction(3, 2)
        yield {"name": "convolved-counts" if little else "summed-counts", **tail}
    elif "analytic" in known:
        yield {"name": "analytic"}
        moves = verify.moves_of(claim["release"])[noise["name"]]
        square = verify.longest_column(noise["encoder"], noise["columns"]) * moves["squares"]
        rho = square / (2 * verify.rational(noise["sigma"]) ** 2)
        yield {"name": "concentrated", "order": str(best_order(rho, epsilon))}
    elif "rational" in known:
        yield {"name": "rational"}
        if delta:
            yield {"name": "responses", **tail}
    else:
        # Grids of 1/64 of the typical loss and finer; each halving quarters the slack. Bounded
        # noise ends in huge losses of tiny mass: a long grid, unless more is cut off.
        first = max(1, math.ceil(-math.log2(min(0.5, _typical_loss(noise) / 64))))
        digits = 9 if "weights" in noise else 12
        for m in range(first, first + 9):
            base = str(1 - Fraction(1, 1 << m))
            cut = _cut(delta, digits)
            yield {"name": "connect-the-dots", "base": base, "bits": _BITS, "cut": cut}


def _cut(delta: Fraction, digits: int = 12) -> str:
    """A trillionth of delta, or another negative power of ten."""
    return f"1e{math.floor(math.log10(delta)) - digits}" if delta else "1e-30"


def _typical_loss(noise: JsonObject) -> float:
    """Root mean square of the privacy loss of one move, roughly."""
    if "mean" in noise:
        variance = float(Fraction(noise["mean"]))
    elif "weights" not in noise and isinstance(noise["trials"], int):
        p = Fraction(noise["probability"])
        variance = float(noise["trials"] * p * (1 - p))
    elif "weights" not in noise:  # histograms: two cells move
        kinds = zip(noise["trials"], noise["probability"], strict=True)
        variance = min(float(trials * Fraction(p)) for trials, p in kinds) / 2
    else:
        weights, total = noise["weights"], sum(noise["weights"])
        mean = sum(x * w for x, w in enumerate(weights)) / total
        variance = sum((x - mean) ** 2 * w for x, w in enumerate(weights)) / total * noise["draws"]
    return 1 / math.sqrt(max(1.0, variance))


def best_order(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The order of the Rényi divergence that gives the least delta, to a part in 64.

    The logarithm of `verify.concentrated` has a slope of 2·a·rho - rho - epsilon - 1/a - 1/a^2,
    which grows with the order a: its root is found by halving.
    """
    cost, asked = float(rho), float(epsilon)
    low, high = 1.0, max(1.0, (cost + asked + 2) / (2 * cost))
    for _ in range(60):
        a = (low + high) / 2
        rises = 2 * a * cost - cost - asked - 1 / a - 1 / a**2 > 0
        low, high = (low, a) if rises else (a, high)
    return 1 + Fraction(max(1, round(64 * (low - 1))), 64)
