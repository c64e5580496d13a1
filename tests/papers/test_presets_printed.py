"""Every constant of every preset, as it stands in the papers: formula, and where it is printed.

Compared with the papers line by line. ``COMPUTED`` names the test that compares the code with each.
"""

from pathlib import Path

import pytest

from discreet.papers.presets import PRESETS

pytestmark = pytest.mark.core

SHUFFLE = "000 001"
OBI = "002 002-gaussian 002-randomized-response"
BERNSTEIN = "003-jdp 003-ldp"
ADVERSARIAL = "004-full-jdp 004-full-ldp 004-bandit-jdp 004-bandit-ldp"

PRINTED = [
    (SHUFFLE, "epsilon'", "eps/(3H)", "Section V"),
    ("000", "tau", "96·log(2/beta')/eps'^2", "Section IX-A, Algorithm 4"),
    (SHUFFLE, "noise, n <= tau", "ceil(tau/n) bits of Bernoulli(1/2)", "Section V"),
    (SHUFFLE, "noise, n > tau", "one bit of Bernoulli(tau/(2n))", "Section V"),
    ("000", "post-processing", "min max|n - N~|, |sum n - N~(x,a)| <= E/4; + E/(2X)", "(4), (5)"),
    (SHUFFLE, "iota", "log(2·H·A·K/delta)", "Algorithms 1 and 2, initialization"),
    (SHUFFLE, "C_1", "6", "Algorithm 2, initialization"),
    (SHUFFLE, "infrequent", "N~(x,a,x') <= C_1·E·H^2·iota", "Algorithm 2, line 9"),
    (SHUFFLE, "L_b", "2^b", "Algorithm 1, line 3"),
    ("000", "beta'", "beta", "Section V-A: not split"),
    ("000", "width", "2C(sqrt(X^2·A·H^5·iota/L) + X^3·A^2·H^5·E·iota/L)", "Algorithm 1, line 9"),
    ("000", "episodes of a stage", "2·L_b", "Algorithm 1, line 2"),
    ("001", "tau", "96·log(2/beta')/eps'^2", "proof of Lemma 10: sqrt(6·log/tau) = eps'/4"),
    (
        "001",
        "post-processing",
        "min max|n - N~|, |sum n - N~(x,a)| <= E/4; + E/(2X)",
        "(6) and after it",
    ),
    ("001", "beta'", "beta/(HXA)", "Section V"),
    ("001", "fine exploration", "argmin max sum V^mu/V^pi", "(3)"),
    ("001", "width", "2C(sqrt(X·A·H^3·iota/L) + X^3·A·H^5·E·iota/L)", "Algorithm 1, line 9"),
    ("001", "episodes of a stage", "3·L_b (2·L_b are counted)", "Algorithms 1, 2 and 3"),
    (OBI, "alpha", "> 1 (2 here)", "Algorithm 2; Proposition 4"),
    (OBI, "estimates", "R~/(N~^r + alpha·c_2), N~^p/(N~^p(s,a) + alpha·c_3)", "(4)"),
    (
        OBI,
        "beta^r",
        "sqrt(2·ln(4·pi^2·S·A·H·k^3/(3·delta))/D) + ((alpha+1)·c_2 + c_1)/D",
        "Proposition 4",
    ),
    (
        OBI,
        "beta^p",
        "sqrt(14·S·ln(4·pi^2·S·A·H·k^3/(3·delta))/D) + (S·c_4 + (alpha+1)·c_3)/D",
        "Proposition 4",
    ),
    (OBI, "bonus", "(H-h+1)·beta^p + beta^r", "Section 4.2, before (5)"),
    (OBI, "cap", "V = min(H-h+1, max Q)", "(5)"),
    (OBI, "failure of c_1 to c_4", "3·delta/(2·pi^2·k^2) before episode k", "Algorithm 2"),
    ("002 002-psrl", "noise", "Lap(6H/eps)", "Table 1"),
    ("002-gaussian", "noise", "N(0, (H/eps)^2)", "Table 1"),
    ("002-gaussian", "delta_0", "0.1", "caption of Figure 2"),
    ("002-randomized-response", "noise", "Ber(1/(e^(eps/H) - 1))", "Table 1"),
    ("002-psrl", "posterior", "Dirichlet; Normal-Gamma", "Section 6"),
    (BERNSTEIN, "iota", "log(30·H·S·A·T/beta), T = KH", "Algorithm 1, line 2"),
    (BERNSTEIN, "bonus 1", "2·sqrt(Var(V)·iota/N)", "Algorithm 1, line 7"),
    (BERNSTEIN, "bonus 2", "sqrt(2·iota/N)", "Algorithm 1, line 7"),
    (BERNSTEIN, "bonus 3", "20·H·S·E·iota/N", "Algorithm 1, line 7"),
    (
        BERNSTEIN,
        "bonus 4",
        "4·sqrt(iota)·sqrt(sum P·min{1000^2·H^3·S·A·iota^2/N' "
        "+ 1000^2·H^4·S^4·A^2·E^2·iota^4/N'^2 "
        "+ 1000^2·H^6·S^4·A^2·iota^4/N'^2, H^2}/N)",
        "Algorithm 1, line 7; (31)",
    ),
    (BERNSTEIN, "clip", "Q = min{Q_prev, H, r + P·V + b}", "Algorithm 1, line 9"),
    (BERNSTEIN, "post-processing", "|sum - N^| <= E/4; + E/(2S)", "(4), (5)"),
    ("003-jdp", "noise", "eps/(3H·log K) per node", "Section 5.1"),
    ("003-ldp", "noise", "Lap(3H/eps)", "Section 5.2"),
    (
        ADVERSARIAL,
        "beta_k",
        "sqrt(2·P~(1-P~)·ln iota/N~) + (4E + 7·ln iota)/N~",
        "(3.1); after (D.1)",
    ),
    (ADVERSARIAL, "iota", "XAK/delta", "after (3.1)"),
    (ADVERSARIAL, "delta", "XA/K", "Theorems 3.3 and 4.2"),
    (ADVERSARIAL, "post-processing", "|sum - N^| <= E/4; + E/(2X_{h+1})", "(5.1), (5.2)"),
    ("004-full-jdp 004-full-ldp", "eta", "sqrt(ln(XA/H)/K)", "Theorem 3.3"),
    (
        "004-full-jdp 004-bandit-jdp",
        "noise on counts",
        "eps/(3H·log K) per node",
        "Section 5.1 (1)",
    ),
    (
        "004-full-jdp",
        "noise on losses",
        "eps/(3H·log K) per node, ceil(log K) terms in every release",
        "Section 5.1 (2), 5.1.1; Algorithm 4",
    ),
    ("004-full-ldp 004-bandit-ldp", "noise on counts", "Lap(3H/eps)", "Section 5.2 (1)"),
    ("004-full-ldp", "noise on losses", "Lap(3H/eps)", "Section 5.2 (2)"),
    ("004-bandit-jdp 004-bandit-ldp", "eta", "sqrt(X/K)", "Theorem 4.2"),
    ("004-bandit-jdp 004-bandit-ldp", "loss estimate", "(l~ + E')/(2E' + 1)/u", "(4.1), (4.2)"),
    ("004-bandit-jdp 004-bandit-ldp", "E'", "3H/eps·log(iota)", "Lemmas 5.1 and 5.7"),
    ("004-bandit-jdp 004-bandit-ldp", "noise on losses", "Lap(3H/eps)", "Section 5.1 (3)"),
]
"""Presets, constant, formula, where."""


IOTA = "log(2·H·X·A·K/delta)"
LENGTH = "2^b from max(32, about H·X·A/2) on"
RUN = {
    "000": {"iota": IOTA, "L_b": LENGTH},
    "001": {
        "iota": IOTA,
        "L_b": LENGTH,
        "fine exploration": "the same, pi a mixture of policies",
        "episodes of a stage": "3·L_b, all counted",
    },
}
"""What is run where print cannot be, or is inconsistent."""


@pytest.mark.parametrize("name", PRESETS)
def test_constants_are_those_of_the_paper(name):
    printed = {
        constant: (formula, where)
        for presets, constant, formula, where in PRINTED
        if name in presets.split()
    }
    constants = PRESETS[name].constants
    assert {key: (one.formula, one.where) for key, one in constants.items()} == printed
    assert {key: one.run for key, one in constants.items() if one.run} == RUN.get(name, {})


FULL, BANDIT = "004-full-jdp 004-full-ldp", "004-bandit-jdp 004-bandit-ldp"
_PE, _OBI = "test_policy_elimination_as_printed", "test_ldp_obi_as_printed"
_UCBVI = "test_dp_ucbvi_as_printed"
_REPS, _LBPS = "test_private_uc_o_reps_as_printed", "test_private_uob_lbps"
COMPUTED = [
    (SHUFFLE, ("epsilon'", "tau", "noise, n <= tau", "noise, n > tau", "beta'"), _PE),
    (SHUFFLE, ("iota", "C_1", "infrequent", "L_b", "width", "episodes of a stage"), _PE),
    ("001", ("fine exploration",), "test_certificate"),
    (f"{SHUFFLE} {BERNSTEIN}", ("post-processing",), "test_totals_are_matched_within_a_quarter"),
    (OBI, ("alpha", "estimates", "beta^r", "beta^p", "failure of c_1 to c_4"), _OBI),
    (OBI, ("bonus", "cap"), "test_values_and_actions_are_those_of"),
    (f"{OBI} 002-psrl", ("noise", "delta_0"), "test_local_randomisers_of_002"),
    ("002-psrl", ("posterior",), "test_printed_ldp_psrl_takes_counts_at_face_value"),
    (BERNSTEIN, ("noise", "iota", "bonus 1", "bonus 2", "bonus 3", "bonus 4", "clip"), _UCBVI),
    (ADVERSARIAL, ("beta_k", "post-processing"), "test_confidence_boxes_by_hand"),
    (FULL, ("iota", "delta", "eta", "noise on counts", "noise on losses"), _REPS),
    (BANDIT, ("iota", "delta", "eta", "E'", "noise on counts", "noise on losses"), _LBPS),
    (BANDIT, ("loss estimate",), "test_the_printed_estimate_adds"),
]
"""Presets, their constants, and the test (or how its name begins) that computes them."""


def test_every_constant_is_computed_by_a_test():
    sources = Path(__file__).parents[1].rglob("test_*.py")
    tests = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert [test for *_, test in COMPUTED if f"\ndef {test}" not in tests] == []
    for name, preset in PRESETS.items():
        listed = [constants for presets, constants, _ in COMPUTED if name in presets.split()]
        assert set(preset.constants) <= {one for constants in listed for one in constants}
