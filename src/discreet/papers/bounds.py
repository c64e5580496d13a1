"""Regret bounds, upper and lower, as callables: up to constants and logarithms, as printed.

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

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Size:
    """What a bound depends on: states (X in 000, 001 and 004), actions, horizon, episodes."""

    S: int  # in 004 those of all layers together
    A: int
    H: int
    K: float
    epsilon: float  # infinite without privacy
    support: float | None = None  # C_M of 004; None is its worst case X·sqrt(A)
    delta: float = 1e-6  # delta_0 of 002, of noise that needs one
    errors: tuple[float, ...] = ()  # of `BY_ERROR`: what its text names after the first term

    @property
    def steps(self) -> float:
        """T = K·H."""
        return self.K * self.H

    @property
    def cumulative_support(self) -> float:
        """C_M (004, before Theorem 3.3)."""
        return self.S * math.sqrt(self.A) if self.support is None else self.support


@dataclass(frozen=True)
class RegretBound:
    """A bound on the regret."""

    text: str  # as a person reads it
    shape: Callable[[Size], float] = field(compare=False)  # up to constants and logarithms
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
        errors: tuple[float, ...] = (),
    ) -> float:
        """Its value for one problem size."""
        return self.shape(Size(S, A, H, K, epsilon, support, delta, errors))


def _sum(first: RegretBound, text: str, more: Callable[[Size], float], where: str) -> RegretBound:
    """The non-private part, and the price of privacy."""
    return RegretBound(
        f"{first.text} + {text}",
        lambda n: first.shape(n) + more(n),
        where,
        first.proven,
        first.layered,
    )


def _continual(free: RegretBound, central: str, local: str = "") -> dict[str, RegretBound]:
    """A non-private bound, and with the price of a tree or of reports, where they are printed."""
    tree = _sum(free, "S²AH³/eps", lambda n: n.S**2 * n.A * n.H**3 / n.epsilon, central)
    reports = _sum(
        free,
        "S²A·sqrt(H⁵T)/eps",
        lambda n: n.S**2 * n.A * math.sqrt(n.H**5 * n.steps) / n.epsilon,
        local,
    )
    return {"none": free, "central": tree} | ({"local": reports} if local else {})


_TABLE = "003, Table 1"
_BERNSTEIN = RegretBound(
    "sqrt(SAH²T)", lambda n: math.sqrt(n.S * n.A * n.H**2 * n.steps), "Azar et al. 2017, bonus 2"
)
_HOEFFDING = RegretBound("sqrt(SAH³T)", lambda n: math.sqrt(n.S * n.A * n.H**3 * n.steps), _TABLE)
_WIDER = RegretBound("sqrt(S²AH³T)", lambda n: math.sqrt(n.S**2 * n.A * n.H**3 * n.steps), _TABLE)
_UCRL = RegretBound("HS·sqrt(AT)", lambda n: n.H * n.S * math.sqrt(n.A * n.steps), "002, Theorem 5")
_SUPPORT = RegretBound(
    "printed: H·C_M·sqrt(K)",
    lambda n: n.H * n.cumulative_support * math.sqrt(n.K),
    "004, Theorem 3.3",
    proven=False,  # without 2H·sqrt(K·ln(XA/H)) of (D.4) and HX²A·ln iota·log K of (D.3)
    layered=True,
)
_BANDIT = RegretBound(
    _SUPPORT.text,
    _SUPPORT.shape,
    "004, Theorem 4.2",
    proven=False,  # its proof replaces q/u by 1/u in a negative term
    layered=True,
)
_PE_001 = RegretBound(
    "sqrt(XAH³K)", lambda n: math.sqrt(n.S * n.A * n.H**3 * n.K), "001, Theorem 6"
)
_PE_000 = RegretBound(
    "sqrt(X²AH⁵K)", lambda n: math.sqrt(n.S**2 * n.A * n.H**5 * n.K), "000, Theorem 6"
)
_SDP_001 = _sum(
    _PE_001, "X³AH⁶/eps", lambda n: n.S**3 * n.A * n.H**6 / n.epsilon, "001, Theorem 11"
)
_SDP_000 = _sum(
    _PE_000, "X³A²H⁶/eps", lambda n: n.S**3 * n.A**2 * n.H**6 / n.epsilon, "000, Theorem 11"
)


def _elimination(free: RegretBound, actions: int) -> dict[str, RegretBound]:
    """Theorem 6 of 000 or 001, which is for any E, with the E of batches released otherwise: ours.

    E is O(H/eps) of one central release and O(H·sqrt(K)/eps) of sums of K local reports.
    """
    price = "X³AH⁶" if actions == 1 else "X³A²H⁶"
    source = f"not printed: {free.where} with E ="

    def noise(n: Size) -> float:
        return float(n.S**3 * n.A**actions * n.H**6) / n.epsilon

    return {
        "central": _sum(free, f"{price}/eps", noise, f"{source} H/eps"),
        "local": _sum(
            free,
            f"{price}·sqrt(K)/eps",
            lambda n: noise(n) * math.sqrt(n.K),
            f"{source} H·sqrt(K)/eps",
        ),
    }


def _table_1(noise: str, text: str, price: Callable[[Size], float]) -> RegretBound:
    return _sum(_UCRL, text, price, f"002, Theorem 5 and Table 1 ({noise})")


def _root(n: Size) -> float:
    return math.sqrt(n.K * math.log(1 / n.delta))


LDP_OBI: Mapping[str, RegretBound] = {
    "laplace": _table_1(
        "Laplace",
        "H³S²A·sqrt(K)/eps",
        lambda n: n.H**3 * n.S**2 * n.A * math.sqrt(n.K) / n.epsilon,
    ),
    "gaussian": _table_1(
        "Gaussian",
        "H³S²A·sqrt(K·ln(1/delta))/eps",
        lambda n: n.H**3 * n.S**2 * n.A * _root(n) / n.epsilon,
    ),
    "randomized-response": _table_1(
        "randomised response",
        "H³S²A·sqrt(HK)/eps",
        lambda n: n.H**3 * n.S**2 * n.A * math.sqrt(n.H * n.K) / n.epsilon,
    ),
    "bounded": _table_1(
        "bounded noise",
        "H²S³A·sqrt(AK·ln(1/delta))/eps",
        lambda n: n.H**2 * n.S**3 * n.A * math.sqrt(n.A) * _root(n) / n.epsilon,
    ),
}
"""Randomiser -> bound of LDP-OBI in a stationary MDP: the rows of 002's Table 1."""

BY_ERROR: Mapping[str, RegretBound] = {
    "000, Theorem 6": _sum(
        _PE_000, "X³A²H⁵·E", lambda n: n.S**3 * n.A**2 * n.H**5 * n.errors[0], "000, Theorem 6"
    ),
    "001, Theorem 6": _sum(
        _PE_001, "X³AH⁵·E", lambda n: n.S**3 * n.A * n.H**5 * n.errors[0], "001, Theorem 6"
    ),
    "002, Theorem 5": _sum(
        _UCRL,
        "SAH²·c_3 + H²S²A·c_4 + SAH·c_2 + SAH·c_1",
        lambda n: (
            n.S
            * n.A
            * n.H
            * (n.H * n.errors[2] + n.H * n.S * n.errors[3] + n.errors[1] + n.errors[0])
        ),
        "002, Theorem 5",
    ),
    "003, Theorem 4.1": _sum(
        _BERNSTEIN, "S²AH²·E", lambda n: n.S**2 * n.A * n.H**2 * n.errors[0], "003, Theorem 4.1"
    ),
    "004, Theorem 3.3": _sum(
        _SUPPORT,
        "HX²A·E + H·E_eps",
        lambda n: n.H * (n.S**2 * n.A * n.errors[0] + n.errors[1]),
        "004, Theorem 3.3",
    ),
    "004, Theorem 4.2": _sum(
        _BANDIT,
        "HX⁴A·E + A·E'·sqrt(X³K)",
        lambda n: n.H * n.S**4 * n.A * n.errors[0] + n.A * n.errors[1] * math.sqrt(n.S**3 * n.K),
        "004, Theorem 4.2",
    ),
}
"""Where -> the theorem for any noise; its ``errors`` are (E,), (c_1, c_2, c_3, c_4), (E, E_eps) or
(E, E'), bounds on the noise at all times."""

BOUNDS: Mapping[str, Mapping[str, RegretBound]] = {
    "ucbvi": {"none": _BERNSTEIN},
    "dp-ucbvi": _continual(_BERNSTEIN, "003, Theorem 5.2", "003, Theorem 5.7"),
    "private-ucb-vi": _continual(_HOEFFDING, _TABLE, _TABLE),
    "private-ucb-po": _continual(_WIDER, _TABLE, _TABLE),
    "pucb": _continual(_WIDER, _TABLE),
    "ldp-obi": {"none": _UCRL, "local": LDP_OBI["laplace"]},
    "psrl": {
        "none": RegretBound("HS·sqrt(AT), Bayesian", _UCRL.shape, "Osband, Russo and Van Roy 2013")
    },
    "pe": {"none": _PE_001, "shuffle": _SDP_001, **_elimination(_PE_001, 1)},
    "sdp-pe": {"none": _PE_001, "shuffle": _SDP_001, **_elimination(_PE_001, 1)},
    "private-uc-o-reps": {
        "none": _SUPPORT,
        "central": _sum(
            _SUPPORT,
            "X²AH²/eps",
            lambda n: n.S**2 * n.A * n.H**2 / n.epsilon,
            "004, Theorem 5.2",
        ),
        "local": _sum(
            _SUPPORT,
            "X²AH²·sqrt(K)/eps",
            lambda n: n.S**2 * n.A * n.H**2 * math.sqrt(n.K) / n.epsilon,
            "004, Theorem 5.8",
        ),
    },
    "private-uob-lbps": {
        "none": _BANDIT,
        "central": _sum(
            _BANDIT,
            "AH·sqrt(X³K)/eps",
            lambda n: n.A * n.H * math.sqrt(n.S**3 * n.K) / n.epsilon,
            "004, Theorem 5.2",
        ),
        "local": _sum(
            _BANDIT,
            "X⁴AH²·sqrt(K)/eps",
            lambda n: n.S**4 * n.A * n.H**2 * math.sqrt(n.K) / n.epsilon,
            "004, Theorem 5.8",
        ),
    },
}
"""Learner -> trust model -> bound, for the printed constants."""

VERSION_000: Mapping[str, RegretBound] = {
    "none": _PE_000,
    "shuffle": _SDP_000,
    **_elimination(_PE_000, 2),
}
"""Policy elimination with ``fine="mixture"``."""

_FREE = RegretBound(
    "H·sqrt(SAK)", lambda n: n.H * math.sqrt(n.S * n.A * n.K), "002, Section 3 (stationary)"
)
_FREE_BY_STEP = RegretBound(
    "sqrt(SAH²T)", lambda n: math.sqrt(n.S * n.A * n.H**2 * n.steps), "003, Table 1"
)
LOWER: Mapping[str, RegretBound] = {
    "none": _FREE,
    "central": _sum(
        _FREE,
        "SAH·log(KH)/eps",
        lambda n: n.S * n.A * n.H * math.log(n.steps) / n.epsilon,
        "Vietri et al. 2020, as quoted in 002, Section 1",
    ),
    "shuffle": _sum(
        RegretBound("sqrt(XAH³K)", _FREE_BY_STEP.shape),
        "XAH/eps",
        lambda n: n.S * n.A * n.H / n.epsilon,
        "001, Section VII: SDP implies JDP",
    ),
    "local": RegretBound(
        "H·sqrt(SAK)/min(e^eps - 1, 1)",
        lambda n: n.H * math.sqrt(n.S * n.A * n.K) / min(math.expm1(min(n.epsilon, 1)), 1.0),
        "002, Theorem 2",
    ),
}
"""Trust model -> what no learner can beat on every MDP, up to constants.

In 001 steps have models of their own; the others are for stationary MDPs.
"""

LOWER_WITHOUT_PRIVACY: Mapping[str, RegretBound] = {
    "002": _FREE,
    "003": _FREE_BY_STEP,
    "004, full information": RegretBound(
        "sqrt(XAHK)", lambda n: math.sqrt(n.S * n.A * n.H * n.K), "004, Table 1"
    ),
    "004, bandit": RegretBound(
        "sqrt(XAH²K)", lambda n: math.sqrt(n.S * n.A * n.H**2 * n.K), "004, Table 1"
    ),
}
"""Paper and feedback -> the bound without privacy that it compares itself with."""


_LIKE_PRINTED = {"laplace", "tree-laplace", "tree-iid", "bits", "randomized-response"}
"""Noise of the order H/eps on a counter, as printed."""
_LIKE_GAUSSIAN = {
    "gaussian",
    "tree-gaussian",
    "tree-honaker",
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

    def error(n: Size) -> float:
        users = n.K if trust == "local" else 1.0
        return math.sqrt(n.H ** (1 + pooled) * users * math.log(1 / n.delta)) / n.epsilon

    return replace(
        theorem,
        text=theorem.text.replace("·E", f"·sqrt({terms}·ln(1/delta))/eps"),
        shape=lambda n: theorem.shape(replace(n, errors=(error(n),))),
        where=f"not printed: {theorem.where} with E = sqrt({terms}·ln(1/delta))/eps",
    )
