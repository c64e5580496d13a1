"""Regret bounds, upper and lower, as callables: up to constants and logarithms, as printed.

``BOUNDS[learner][trust]`` is what a paper proves for a learner under a trust model with its printed
constants. Those of policy elimination under central and local privacy are printed nowhere: they are
corollaries of Theorem 6, and their ``where`` begins with "not printed". Without noise only the
leading term is kept (Theorem 6 needs E of about 1: X³AH⁵ more). No paper proves one for LDP-PSRL,
for LDP-OBI with a tree, or for learners of ours. A picture can draw one as a dotted slope.

>>> round(BOUNDS["dp-ucbvi"]["central"](S=4, A=2, H=6, K=20_000, epsilon=1.0))
12791
>>> round(LOWER["local"](S=4, A=2, H=6, K=20_000, epsilon=1.0))
2400
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Size:
    """What a bound depends on: states (X in 000, 001 and 004), actions, horizon, episodes."""

    S: int  # in 004 those of all layers together, without the last
    A: int
    H: int
    K: float
    epsilon: float  # infinite without privacy
    support: float | None = None  # C_M of 004; None is its worst case X·sqrt(A)

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
    ) -> float:
        """Its value for one problem size."""
        return self.shape(Size(S, A, H, K, epsilon, support))


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
    proven=False,  # it drops 2H·sqrt(K·ln(XA/H)) of (D.4), which does not vanish with C_M
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


_OBI = _sum(
    _UCRL,
    "H³S²A·sqrt(K)/eps",
    lambda n: n.H**3 * n.S**2 * n.A * math.sqrt(n.K) / n.epsilon,
    "002, Theorem 5 and Table 1 (Laplace)",
)

BOUNDS: Mapping[str, Mapping[str, RegretBound]] = {
    "ucbvi": {"none": _BERNSTEIN},
    "dp-ucbvi": _continual(_BERNSTEIN, "003, Theorem 5.2", "003, Theorem 5.7"),
    "private-ucb-vi": _continual(_HOEFFDING, _TABLE, _TABLE),
    "private-ucb-po": _continual(_WIDER, _TABLE, _TABLE),
    "pucb": _continual(_WIDER, _TABLE),
    "ldp-obi": {"none": _UCRL, "local": _OBI},
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


def bounds_of(learner: str, fine: object = None) -> Mapping[str, RegretBound]:
    """Those of one learner by trust model; none for a learner that no paper proves one for.

    Args:
        learner: by its registered name.
        fine: policy elimination's setting; ``"mixture"`` is version 000, which has its own.

    >>> bounds_of("sdp-pe", "mixture")["shuffle"].where
    '000, Theorem 11'
    """
    found = BOUNDS.get(learner, {})
    if fine == "mixture":
        return {trust: bound for trust, bound in VERSION_000.items() if trust in found}
    return found
