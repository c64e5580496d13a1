"""Compiled curves of delta for shuffle by classes (equations in `classes`)."""

import math

import numpy as np

from discreet._jit import inlined, kernel
from discreet._types import FloatArray


@kernel
def poisson_curve(ratios: FloatArray, first: int, masses: FloatArray) -> FloatArray:
    """E (Y_a - x·Y_b)+ for each ratio x >= 1; Y_a and Y_b have ``masses`` from ``first`` on."""
    size = masses.size
    # calls[k] = E (Y - (first + k))+, by sums of positive terms.
    calls = np.zeros(size + 1)
    above = 0.0
    for k in range(size - 1, -1, -1):
        calls[k] = calls[k + 1] + above
        above += masses[k]
    out = np.zeros(ratios.size)
    for i in range(ratios.size):
        total = 0.0
        for j in range(size):
            strike = ratios[i] * (first + j) - first
            k = int(strike)
            if k >= size - 1:
                break
            rest = strike - k  # between integers a call is linear in its strike
            total += masses[j] * (calls[k] * (1.0 - rest) + calls[k + 1] * rest)
        out[i] = total
    return out


@inlined
def least_heads(ratio: float, coins: int) -> int:
    """The least N_a with 1 + N_a > x·N_b, where N_a + N_b = coins."""
    return math.floor((ratio * coins - 1.0) / (1.0 + ratio)) + 1


@inlined
def delta_of_coins(ratio: float, coins: int, heads: int, chance: float) -> float:
    """The delta of ``coins`` coins by its definition; ``chance`` is that of the least heads."""
    total = 0.0
    for k in range(heads, coins + 1):
        odds = (coins - k) / (k + 1.0)
        gain = chance * (1.0 - ratio * odds)
        total += gain
        if gain < 1e-18 * total:
            break
        chance *= odds
    return total


@inlined
def fall(ratio: float, coins: int, heads: int, chance: float) -> float:
    """What one more coin takes from delta: half of the smaller value at the change of sign."""
    here = abs(1.0 - ratio * (coins - heads) / (heads + 1.0))
    below = abs(heads / (coins - heads + 1.0) - ratio)
    return 0.5 * chance * min(here, below)


@kernel
def coins_curve(ratios: FloatArray, first: int, masses: FloatArray) -> FloatArray:
    """Delta at each ratio x >= 1 if the number of coins has ``masses`` from ``first`` on."""
    last = first + masses.size - 1
    out = np.zeros(ratios.size)
    for i in range(ratios.size):
        heads = least_heads(ratios[i], last)
        log = math.lgamma(last + 1.0) - math.lgamma(heads + 1.0) - math.lgamma(last - heads + 1.0)
        chance = math.exp(log - last * math.log(2.0))
        delta = delta_of_coins(ratios[i], last, heads, chance)
        total = masses[-1] * delta
        # From many coins to few, delta only grows: sums, no differences.
        for coins in range(last - 1, first - 1, -1):
            fewer = least_heads(ratios[i], coins)
            kept = heads if fewer < heads else coins + 1 - heads
            chance *= 2.0 * kept / (coins + 1.0)
            heads = fewer
            delta += fall(ratios[i], coins, heads, chance)
            total += masses[coins - first] * delta
        out[i] = total
    return out
