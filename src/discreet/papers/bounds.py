"""Regret bounds, upper and lower, as texts that are computed: up to constants and logarithms.

``BOUNDS[learner][trust]`` is what a paper proves for a learner under a trust model with its printed
constants and noise, ``BY_ERROR`` the theorems for any noise, by how far it goes; `bounds_of` finds
the one of the mechanism that ran. Those of policy elimination under central and local privacy are
printed nowhere: they are corollaries of Theorem 6, and their ``where`` begins with "not printed".
Without noise only the leading term is kept (Theorem 6 needs E of about 1: X³AH⁵ more). No paper
proves one for LDP-PSRL, for LDP-OBI with a tree, or for learners of ours. A picture can draw one as
a dotted slope.

>>> round(BOUNDS["dp-ucbvi"]["central"](S=4, A=2, H=6, K=20_000, epsilon=1.0))
12791
>>> round(LOWER["local"](S=4, A=2, H=6, K=20_000, epsilon=1.0))
2400
"""

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import CodeType

_TOKEN = re.compile(r"sqrt|ln|log|min|eps|delta|exp|C_M|E_eps|E'|c_\d|\w|\d|[-+·/(),^]|[²³⁴⁵⁶]")
_POWERS = {"²": "**2", "³": "**3", "⁴": "**4", "⁵": "**5", "⁶": "**6"}
_NAMES = {"X": "S", "C_M": "C", "E'": "E_prime"}
_FUNCTIONS = {"sqrt": math.sqrt, "ln": math.log, "log": math.log, "exp": math.exp, "min": min}


@functools.cache
def _formula(text: str) -> CodeType:
    """Compiled words of a bound: letters side by side are factors, ``·`` between them may stand.

    At e^eps an epsilon above one counts as one: it stands below a minimum with one.
    """
    plain = text.removeprefix("printed: ").removesuffix(", Bayesian")
    said, before = "", ""
    for token in _TOKEN.findall(plain.replace("e^eps", "exp(min(eps, 1))")):
        starts = token == "(" or (token[0].isalnum() and token not in _POWERS)
        if starts and (before == ")" or before[:1].isalnum()) and before not in _FUNCTIONS:
            said += "*"
        said += _POWERS.get(token) or ("*" if token == "·" else _NAMES.get(token, token))
        before = token
    return compile(said, text, "eval")


@dataclass(frozen=True)
class RegretBound:
    """A bound on the regret.

    >>> RegretBound("S²A·sqrt(H³K)/eps + c_1")(S=2, A=3, H=1, K=4.0, epsilon=0.5, c_1=7.0)
    55.0
    """

    text: str  # as a person reads it, and what is computed: up to constants and logarithms
    where: str = ""  # it is printed, or what it follows from ("not printed: ...")
    proven: bool = True  # False where the printed proof has a gap, or drops a term
    layered: bool = False  # S is the number of states of all layers together (X of 004)

    def __call__(
        self,
        S: int,
        A: int,
        H: int,
        K: float,
        epsilon: float = math.inf,
        *,
        support: float | None = None,
        delta: float = 1e-6,
        **errors: float,
    ) -> float:
        """Its value for one problem size: S states, A actions, H steps, K episodes.

        Args:
            S: states (X in 000, 001 and 004).
            A: actions.
            H: steps.
            K: episodes; T is K·H.
            epsilon: infinite without privacy.
            support: C_M of 004; None is its worst case X·sqrt(A).
            delta: delta_0 of 002, of noise that needs one.
            errors: of `BY_ERROR`, by name, ``E_prime`` for E'.
        """
        sizes = {"S": S, "A": A, "H": H, "K": K, "T": K * H, "eps": epsilon, "delta": delta}
        most = S * math.sqrt(A) if support is None else support
        names = {**_FUNCTIONS, **sizes, "C": most, **errors, "__builtins__": {}}
        return float(eval(_formula(self.text), names))

    def plus(self, text: str, where: str) -> "RegretBound":
        """With a price of privacy."""
        return replace(self, text=f"{self.text} + {text}", where=where)


def _continual(free: RegretBound, central: str, local: str = "") -> dict[str, RegretBound]:
    """A non-private bound, and with the price of a tree or of reports, where they are printed."""
    found = {"none": free, "central": free.plus("S²AH³/eps", central)}
    return found | ({"local": free.plus("S²A·sqrt(H⁵T)/eps", local)} if local else {})


_TABLE = "003, Table 1"
_BERNSTEIN = RegretBound("sqrt(SAH²T)", "Azar et al. 2017, bonus 2")
_WIDER = RegretBound("sqrt(S²AH³T)", _TABLE)
_UCRL = RegretBound("HS·sqrt(AT)", "002, Theorem 5")
# Not proven: without 2H·sqrt(K·ln(XA/H)) of (D.4) and HX²A·ln iota·log K of (D.3).
_SUPPORT = RegretBound("printed: H·C_M·sqrt(K)", "004, Theorem 3.3", proven=False, layered=True)
# Not proven: its proof replaces q/u by 1/u in a negative term.
_BANDIT = replace(_SUPPORT, where="004, Theorem 4.2")
_PE_001 = RegretBound("sqrt(XAH³K)", "001, Theorem 6")
_PE_000 = RegretBound("sqrt(X²AH⁵K)", "000, Theorem 6")


def _elimination(free: RegretBound, price: str) -> dict[str, RegretBound]:
    """Theorem 11 of 000 or 001, and Theorem 6, for any E, with that of other releases: ours.

    E is O(H/eps) of one central release and O(H·sqrt(K)/eps) of sums of K local reports.
    """
    source = f"not printed: {free.where} with E ="
    return {
        "none": free,
        "shuffle": free.plus(f"{price}/eps", free.where.replace("Theorem 6", "Theorem 11")),
        "central": free.plus(f"{price}/eps", f"{source} H/eps"),
        "local": free.plus(f"{price}·sqrt(K)/eps", f"{source} H·sqrt(K)/eps"),
    }


LDP_OBI: Mapping[str, RegretBound] = {
    mechanism: _UCRL.plus(price, f"002, Theorem 5 and Table 1 ({noise})")
    for mechanism, noise, price in (
        ("laplace", "Laplace", "H³S²A·sqrt(K)/eps"),
        ("gaussian", "Gaussian", "H³S²A·sqrt(K·ln(1/delta))/eps"),
        ("randomized-response", "randomised response", "H³S²A·sqrt(HK)/eps"),
        ("bounded", "bounded noise", "H²S³A·sqrt(AK·ln(1/delta))/eps"),
    )
}
"""Randomiser -> bound of LDP-OBI in a stationary MDP: the rows of 002's Table 1."""

BY_ERROR: Mapping[str, RegretBound] = {
    where: free.plus(price, where)
    for where, free, price in (
        ("000, Theorem 6", _PE_000, "X³A²H⁵·E"),
        ("001, Theorem 6", _PE_001, "X³AH⁵·E"),
        ("002, Theorem 5", _UCRL, "SAH²·c_3 + H²S²A·c_4 + SAH·c_2 + SAH·c_1"),
        ("003, Theorem 4.1", _BERNSTEIN, "S²AH²·E"),
        ("004, Theorem 3.3", _SUPPORT, "HX²A·E + H·E_eps"),
        ("004, Theorem 4.2", _BANDIT, "HX⁴A·E + A·E'·sqrt(X³K)"),
    )
}
"""Where -> the theorem for any noise, with bounds E, c_1, ... on the noise at all times."""

BOUNDS: Mapping[str, Mapping[str, RegretBound]] = {
    "ucbvi": {"none": _BERNSTEIN},
    "dp-ucbvi": _continual(_BERNSTEIN, "003, Theorem 5.2", "003, Theorem 5.7"),
    "private-ucb-vi": _continual(RegretBound("sqrt(SAH³T)", _TABLE), _TABLE, _TABLE),
    "private-ucb-po": _continual(_WIDER, _TABLE, _TABLE),
    "pucb": _continual(_WIDER, _TABLE),
    "ldp-obi": {"none": _UCRL, "local": LDP_OBI["laplace"]},
    "psrl": {"none": RegretBound(f"{_UCRL.text}, Bayesian", "Osband, Russo and Van Roy 2013")},
    "pe": _elimination(_PE_001, "X³AH⁶"),
    "sdp-pe": _elimination(_PE_001, "X³AH⁶"),
    "private-uc-o-reps": {
        "none": _SUPPORT,
        "central": _SUPPORT.plus("X²AH²/eps", "004, Theorem 5.2"),
        "local": _SUPPORT.plus("X²AH²·sqrt(K)/eps", "004, Theorem 5.8"),
    },
    "private-uob-lbps": {
        "none": _BANDIT,
        "central": _BANDIT.plus("AH·sqrt(X³K)/eps", "004, Theorem 5.2"),
        "local": _BANDIT.plus("X⁴AH²·sqrt(K)/eps", "004, Theorem 5.8"),
    },
}
"""Learner -> trust model -> bound, for the printed constants."""

VERSION_000: Mapping[str, RegretBound] = _elimination(_PE_000, "X³A²H⁶")
"""Policy elimination with ``fine="mixture"``."""

_FREE = RegretBound("H·sqrt(SAK)", "002, Section 3 (stationary)")
LOWER: Mapping[str, RegretBound] = {
    "none": _FREE,
    "central": _FREE.plus("SAH·log(KH)/eps", "Vietri et al. 2020, as quoted in 002, Section 1"),
    "shuffle": RegretBound("sqrt(XAH³K) + XAH/eps", "001, Section VII: SDP implies JDP"),
    "local": RegretBound("H·sqrt(SAK)/min(e^eps - 1, 1)", "002, Theorem 2"),
}
"""Trust model -> what no learner can beat on every MDP, up to constants.

In 001 steps have models of their own; the others are for stationary MDPs.
"""

_LIKE_PRINTED = {"laplace", "tree-laplace", "tree-signed", "bits", "randomized-response"}
"""Noise of the order H/eps on a counter, as printed."""
_LIKE_GAUSSIAN = {
    "gaussian",
    "toeplitz",
    "bounded",
    "histogram",
}
"""Noise of the order sqrt(H·ln(1/delta))/eps: one user moves H counters of a statistic by one."""
_THEOREMS = {"pe": "001, Theorem 6", "sdp-pe": "001, Theorem 6", "dp-ucbvi": "003, Theorem 4.1"}


def bounds_of(
    learner: str, fine: object = None, *, mechanism: str | None = None, stationary: object = True
) -> Mapping[str, RegretBound]:
    """Those of one learner by trust model; none for a learner that no paper proves one for.

    Args:
        learner: by its registered name.
        fine: policy elimination's setting; ``"mixture"`` is version 000, which has its own.
        mechanism: that ran; None: the printed one. For Gaussian noise, which is not printed, the
            theorem for any noise of policy elimination and DP-UCBVI; elsewhere there is none.
        stationary: counts were summed over the steps (LDP-OBI: 003 has the other bound).

    >>> bounds_of("sdp-pe", "mixture")["shuffle"].where
    '000, Theorem 11'
    >>> bounds_of("dp-ucbvi", mechanism="toeplitz")["central"].text
    'sqrt(SAH²T) + S²AH²·sqrt(H²·ln(1/delta))/eps'
    """
    found = dict(BOUNDS.get(learner, {}))
    if fine == "mixture":
        found = {trust: bound for trust, bound in VERSION_000.items() if trust in found}
    if learner == "ldp-obi" and not stationary:
        found["local"] = replace(BOUNDS["private-ucb-po"]["local"], where=f"{_TABLE} (LDP-OBI)")
    if mechanism in (None, "none") or (mechanism in _LIKE_PRINTED and learner != "ldp-obi"):
        return found
    free = {trust: bound for trust, bound in found.items() if trust == "none"}
    if learner == "ldp-obi":
        rows = LDP_OBI if stationary else {"laplace": found["local"]}
        return free | ({"local": rows[mechanism]} if mechanism in rows else {})
    if mechanism not in _LIKE_GAUSSIAN or learner not in _THEOREMS:
        return free
    theorem = BY_ERROR["000, Theorem 6" if fine == "mixture" else _THEOREMS[learner]]
    pooled = bool(stationary) and learner not in ("pe", "sdp-pe")
    return free | {t: _with_gaussian(theorem, t, pooled) for t in found if t != "none"}


def _with_gaussian(theorem: RegretBound, trust: str, pooled: bool) -> RegretBound:
    """A theorem for any noise with E of Gaussian order, of one release or of a sum of K reports.

    Counters of all steps together (``pooled``) move by up to H for one user, all others by one.
    """
    terms = "H" + "²" * pooled + "K" * (trust == "local")
    error = f"sqrt({terms}·ln(1/delta))/eps"
    where = f"not printed: {theorem.where} with E = {error}"
    return replace(theorem, text=theorem.text.replace("·E", f"·{error}"), where=where)
