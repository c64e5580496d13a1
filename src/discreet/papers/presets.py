"""Presets: one algorithm of one paper each, with every printed constant and where it stands.

A test per preset computes the printed formulas and compares what the code uses; another recomputes
``delivers`` by exact accounting.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from discreet import _validate
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.privacy.guarantee import Guarantee, rounded_up

if TYPE_CHECKING:
    from discreet._types import Plain
    from discreet.mdp.shape import Shape
    from discreet.privacy.trust import TrustModel


class Printed(NamedTuple):
    """One printed constant."""

    formula: str  # in the letters of the paper
    where: str  # section, equation, line or table
    run: str = ""  # what is run instead, where that cannot be run or is inconsistent


@dataclass(frozen=True)
class Reference:
    """The problem that a preset's numbers are stated for: epsilon and delta as claimed."""

    states: int  # S (X in 000, 001, 004)
    actions: int
    horizon: int
    episodes: int
    epsilon: float
    delta: float
    environment: str
    parameters: Mapping[str, "Plain"] = field(default_factory=dict)


@dataclass(frozen=True)
class Delivered:
    """What a printed protocol gives to one user, by exact accounting under replace-one.

    ``refuted_from`` is the least number of users of a shuffled batch for which delta is refuted;
    epsilon and delta are then those of all batches of a run.
    """

    epsilon: float | None  # None if no finite one is delivered
    delta: float  # one if nothing is
    why: str
    refuted_from: int | None = None

    def to_dict(self) -> "dict[str, Plain]":
        said: dict[str, Plain] = {"epsilon": self.epsilon, "delta": self.delta, "why": self.why}
        return said if self.refuted_from is None else said | {"refuted_from": self.refuted_from}


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A paper's algorithm with its privatizer, constants and schedule.

    Attributes:
        name: what `run_paper` takes; it begins with the paper's number.
        algorithm: as the paper calls it.
        calibration: which printed constants the release has.
        settings: of the learner, as printed; ``literal`` is among them where ``repairs`` are.
        constants: what is printed and where, and what is run where that is something else.
        deviations: what is inconsistent or missing in print or cannot be run, and what is done.
        repairs: what ``literal=False`` changes besides.
        reference: the problem that ``delivers`` is stated for.
        delivers: to one user, for the view that the printed protocol gives.
        if_only_sums: the same if the analyser saw nothing but sums, where that differs.
        delta: unless the caller gives one; 0 where the mechanism is pure.
    """

    name: str
    paper: str
    algorithm: str
    learner: str
    trust: Literal["central", "local", "shuffle"]
    mechanism: str
    calibration: str
    settings: Mapping[str, "Plain"]
    constants: Mapping[str, Printed]
    deviations: tuple[str, ...]
    reference: Reference
    delivers: Delivered
    if_only_sums: Delivered | None = None
    delta: float = 0.0
    repairs: tuple[str, ...] = ()

    def chosen(self, own: "Mapping[str, Plain]") -> "dict[str, Plain]":
        """The settings of a run: as printed, but for those that a caller gives.

        Who replaces a printed one has left the print, so that ``literal`` is False unless given.

        Raises:
            InvalidInputError: ``literal`` of a preset without repairs.
        """
        if "literal" in own and not self.repairs:
            raise InvalidInputError(
                f"Expected no literal beside paper {self.name!r}, which has nothing to repair, got "
                f"literal={own['literal']!r}; leave it out."
            )
        kept = {**self.settings, **own}
        if self.repairs and "literal" not in own:
            kept["literal"] = all(
                own.get(name, value) == value for name, value in self.settings.items()
            )
        return kept

    def title(self, calibration: str | None = None, *, literal: bool = True) -> str:
        """What tables call a run: a repaired one is not called as the printed one is."""
        repaired = ", exact noise" if self.noise(calibration) == "exact" else ""
        repaired += "" if literal else ", repaired"
        return f"{self.algorithm}, paper {self.name}{repaired}"

    def noise(self, calibration: str | None = None) -> str:
        """The calibration of a run: as printed (None, ``"paper"``), or ``"exact"``.

        Raises:
            InvalidInputError: that of another paper, a mixture which nobody prints.
        """
        if calibration in (None, "", "paper", self.calibration):
            return self.calibration
        if calibration != "exact":
            raise InvalidInputError(
                f"Expected calibration 'exact' or {self.calibration!r} beside paper {self.name!r}, "
                f"got {calibration!r}, which mixes papers; take a learner and a trust model for "
                f"mixtures."
            )
        return "exact"

    def trust_model(
        self, epsilon: float | None, delta: float | None = None, calibration: str | None = None
    ) -> "TrustModel":
        """The trust model of a run, for the claimed epsilon and delta (None: the preset's own).

        With the calibration ``"exact"`` the same mechanism has noise that keeps the claim.
        """
        from discreet.privacy.trust import make_trust

        if epsilon is None:
            raise InvalidInputError(
                f"Expected an epsilon for paper {self.name!r}, got none; write for instance "
                f"run_paper({self.name!r}, mdp, epsilon=1, ...)."
            )
        return make_trust(
            self.trust,
            epsilon=epsilon,
            delta=self.delta if delta is None else delta,
            mechanism=self.mechanism,
            calibration=self.noise(calibration),
        )

    def view(self, shape: "Shape", trust: "TrustModel", batches: Sequence[int]) -> Delivered | None:
        """What the messages of the printed protocol deliver in such batches, where they show more.

        All batches together deliver what the worst one does: they hold disjoint users.
        """
        from discreet.privacy.certificates.multiset import multiset_epsilon
        from discreet.privacy.mechanisms.bits import printed_shuffle
        from discreet.privacy.trust import Shuffle

        if self.if_only_sums is None or not isinstance(trust, Shuffle) or not trust.printed:
            return None
        split, moves = self.paper != "000", 3 * shape.horizon
        printed = printed_shuffle(shape, trust.epsilon, trust.delta, split=split)
        refuted = printed.refuted_from(float(trust.delta), moves)
        worst, why = 0.0, printed.integers(float(trust.delta), moves)
        if max(batches) >= refuted:
            return Delivered(None, 1.0, why, refuted)
        for users in sorted(set(batches), reverse=True):
            bits, delta = printed.bits(users).bits, _validate.exact(trust.delta)
            worst = max(worst, multiset_epsilon(users, bits, 2 * moves, delta))
        if worst == math.inf:
            return Delivered(None, 1.0, why, refuted)
        return Delivered(worst, float(trust.delta), why, refuted)

    def seen(
        self, guarantee: Guarantee, view: Delivered | None = None, batches: Sequence[int] = ()
    ) -> Guarantee:
        """The guarantee of a run as printed: of the view that the printed protocol gives.

        Our simulation adds messages up; the analyser of 000 and 001 receives them as they are.
        ``guarantee`` is that of the sums; ``view`` what the messages deliver in this run (None: in
        that of the reference).
        """
        if self.if_only_sums is None or guarantee.claimed is None:
            return guarantee
        view = view or self.delivers
        largest = f"; the largest batch here had {max(batches):,} users" if batches else ""
        sums = f"({rounded_up(guarantee.epsilon)}, {rounded_up(guarantee.delta, 3)})"
        return replace(
            guarantee,
            epsilon=math.inf if view.epsilon is None else view.epsilon,
            delta=view.delta,
            claimed=f"{guarantee.claimed} by paper {self.paper}",
            assumptions=(
                *guarantee.assumptions,
                f"{view.why}{largest}; if only sums were seen: {sums}",
                "the integers of different counters cannot be linked",
            ),
        )

    def to_dict(self) -> "dict[str, Plain]":
        """What `discreet list papers --json` says."""
        said: dict[str, Plain] = {
            "name": self.name,
            "paper": self.paper,
            "algorithm": self.algorithm,
            "summary": f"{self.algorithm} as paper {self.paper} prints it, {self.mechanism} noise",
            "learner": self.learner,
            "trust": self.trust,
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "settings": dict(self.settings),
            "constants": {n: [part for part in one if part] for n, one in self.constants.items()},
            "reference": asdict(self.reference),
            "delivers": self.delivers.to_dict(),
        }
        if self.if_only_sums is not None:
            said["delivers_if_only_sums_are_seen"] = self.if_only_sums.to_dict()
        return said | {"deviations": list(self.deviations), "repairs": list(self.repairs)}


@dataclass(frozen=True)
class _Algorithm:
    """What is printed of an algorithm whatever its noise; `preset` adds one of its privatizers."""

    name: str
    constants: Mapping[str, Printed]
    deviations: tuple[str, ...] = ()
    settings: "Mapping[str, Plain]" = field(default_factory=lambda: {"constants": "theory"})
    repairs: tuple[str, ...] = ()

    def preset(
        self,
        name: str,
        noise: tuple[Literal["central", "local", "shuffle"], str],
        reference: Reference,
        delivers: Delivered,
        *,
        constants: Mapping[str, Printed],
        deviations: tuple[str, ...] = (),
        repairs: tuple[str, ...] = (),
        if_only_sums: Delivered | None = None,
        **settings: "Plain",
    ) -> Preset:
        """The algorithm with the noise of a (trust model, mechanism), and what this adds in print.

        A preset's name begins with its paper's number; learners are named as papers name them.
        """
        paper, (trust, mechanism) = name[:3], noise
        repairs = (*self.repairs, *repairs)
        literal: dict[str, Plain] = {"literal": True} if repairs else {}
        return Preset(
            name=name,
            paper=paper,
            algorithm=self.name,
            learner=self.name.lower(),
            trust=trust,
            mechanism=mechanism,
            calibration=f"paper-{paper}",
            settings={**self.settings, **literal, **settings},
            constants={**self.constants, **constants},
            deviations=(*self.deviations, *deviations),
            repairs=repairs,
            reference=reference,
            delivers=delivers,
            if_only_sums=if_only_sums,
            delta=reference.delta,
        )


_RIVER = Reference(4, 2, 6, 20_000, 1.0, 1e-5, "RiverSwim", {"states": 4, "horizon": 6})
_PURE_RIVER = Reference(4, 2, 6, 20_000, 1.0, 0.0, "RiverSwim", {"states": 4, "horizon": 6})
_RANDOM = {"states": 2, "actions": 2, "horizon": 2, "concentration": 0.1}
_TOY = Reference(2, 2, 2, 10**8, 2.0, 0.0, "RandomMDP", _RANDOM)
_TOY_DELTA = Reference(2, 2, 2, 10**8, 2.0, 0.1, "RandomMDP", _RANDOM)


def _multiset(epsilon: float, tau: int, refuted: int) -> Delivered:
    """What the printed integers deliver: `PrintedShuffle.integers`, in its words."""
    why = (
        f"printed integers show their multiset, which betrays a user at every epsilon with "
        f"probability 1 - (1 - 2^-ceil(tau/n))^36 in a batch of n <= tau = {tau:,} users: "
        f"delta = 1e-05 is refuted from n = {refuted:,} on; "
        f"what holds in smaller batches is computed"
    )
    return Delivered(epsilon, 1e-5, why, refuted)


_SUMS = "the sums of the messages alone, for every batch size; far more noise than the claim needs"
_SDP_PE = _Algorithm(
    "SDP-PE",
    constants={
        "epsilon'": Printed("eps/(3H)", "Section V"),
        "tau": Printed("96·log(2/beta')/eps'^2", "proof of Lemma 10: sqrt(6·log/tau) = eps'/4"),
        "noise, n <= tau": Printed("ceil(tau/n) bits of Bernoulli(1/2)", "Section V"),
        "noise, n > tau": Printed("one bit of Bernoulli(tau/(2n))", "Section V"),
        "post-processing": Printed(
            "min max|n - N~|, |sum n - N~(x,a)| <= E/4; + E/(2X)", "(6) and after it"
        ),
        "iota": Printed("log(2·H·A·K/delta)", "Algorithms 1 and 2, initialization"),
        "C_1": Printed("6", "Algorithm 2, initialization"),
        "infrequent": Printed("N~(x,a,x') <= C_1·E·H^2·iota", "Algorithm 2, line 9"),
        "L_b": Printed("2^b", "Algorithm 1, line 3"),
    },
    deviations=(
        "C is left open: 1; the failure probability delta is left open: 0.1; E is left in O(): "
        "four times a sub-Gaussian bound, no quantile, on the exact noise of all H·X·A·(X + 2) "
        "counters of a batch, at least 1",
        "L/H and L/(HXA) are no integers: lengths are split by quotient and remainder, and a step "
        "without an episode stays absorbed",
        "the crude model, 'initialized arbitrarily', begins with all mass absorbed",
        "R_h(x, a, x') in Algorithm 3 is read as R_h(x, a), and rewards are clipped to [0, 1]",
        "tuples that no active policy reaches are left out (0/0); a step of them plays greedily",
        "counters that nobody can touch, given the public policies of a batch, are zero without "
        "noise; a batch of crude exploration releases all steps and uses one",
        "the distribution of the first state, which V needs, is estimated from the counts, if "
        "there are several",
        "messages are simulated by their sums; the guarantee is that of what is printed",
        "beta is left open: 1e-5; the claim is for epsilon in (0, 1) (Lemma 10 and Theorem 11; 000 "
        "also Lemma 42), epsilon = 1 is that of figure 4 in 001; 000 has no experiment: RiverSwim "
        "is 001's",
    ),
    settings={"structure": "paper", "constants": "theory"},
    repairs=(
        "iota = log(2HXAK/delta), with the X of its union bound",
        "stages from a power of two of at least 32 and about HXA/2 on: with L_1 = 2 steps are left "
        "without a single episode",
    ),
)

_DISCRETE = "noise is drawn on the integers; users round rewards to bits at random"
_LAST_STEP = "the transition of step H is counted, too, which delivers "
_LDP_OBI = _Algorithm(
    "LDP-OBI",
    constants={
        "alpha": Printed("> 1 (2 here)", "Algorithm 2; Proposition 4"),
        "estimates": Printed("R~/(N~^r + alpha·c_2), N~^p/(N~^p(s,a) + alpha·c_3)", "(4)"),
        "beta^r": Printed(
            "sqrt(2·ln(4·pi^2·S·A·H·k^3/(3·delta))/D) + ((alpha+1)·c_2 + c_1)/D", "Proposition 4"
        ),
        "beta^p": Printed(
            "sqrt(14·S·ln(4·pi^2·S·A·H·k^3/(3·delta))/D) + (S·c_4 + (alpha+1)·c_3)/D",
            "Proposition 4",
        ),
        "bonus": Printed("(H-h+1)·beta^p + beta^r", "Section 4.2, before (5)"),
        "cap": Printed("V = min(H-h+1, max Q)", "(5)"),
        "failure of c_1 to c_4": Printed("3·delta/(2·pi^2·k^2) before episode k", "Algorithm 2"),
    },
    deviations=(
        "c_1 to c_4 stand in an appendix that the copy we had lacks: Chernoff bounds on the exact "
        "noise (module `ldp_obi`), on a grid of times and rounded up between them",
        "alpha and delta are left open: 2 and 0.1",
        "Q is infinite where a denominator of (4) is not positive; ties are broken at random",
        _DISCRETE,
    ),
    settings={"constants": "theory", "union": "printed"},
)
_MOVES = Printed("sum over the first H-1 steps", "Section 4.1")
_UNITS = Delivered(1.667, 0.0, "6H - 2 units on a scale for 6H")
_LDP_PSRL = _Algorithm(
    "LDP-PSRL",
    constants={"posterior": Printed("Dirichlet; Normal-Gamma", "Section 6")},
    deviations=(
        "prior and update stand in an appendix that the copy we had lacks: conjugate ones (module "
        "`psrl`), counts floored at zero and rewards clipped to [0, n]",
        _DISCRETE,
    ),
)

_ERROR = (
    "E is left in O() and for all K episodes: four times a Chernoff bound, no quantile, on the "
    "exact noise at that episode"
)
_DP_UCBVI = _Algorithm(
    "DP-UCBVI",
    constants={
        "iota": Printed("log(30·H·S·A·T/beta), T = KH", "Algorithm 1, line 2"),
        "bonus 1": Printed("2·sqrt(Var(V)·iota/N)", "Algorithm 1, line 7"),
        "bonus 2": Printed("sqrt(2·iota/N)", "Algorithm 1, line 7"),
        "bonus 3": Printed("20·H·S·E·iota/N", "Algorithm 1, line 7"),
        "bonus 4": Printed(
            "4·sqrt(iota)·sqrt(sum P·min{1000^2·H^3·S·A·iota^2/N' "
            "+ 1000^2·H^4·S^4·A^2·E^2·iota^4/N'^2 + 1000^2·H^6·S^4·A^2·iota^4/N'^2, H^2}/N)",
            "Algorithm 1, line 7; (31)",
        ),
        "clip": Printed("Q = min{Q_prev, H, r + P·V + b}", "Algorithm 1, line 9"),
        "post-processing": Printed("|sum - N^| <= E/4; + E/(2S)", "(4), (5)"),
    },
    deviations=(
        _ERROR,
        "the failure probability beta is left open: 0.1",
        "bonus 3 is at least 2·H·iota/(3N), which the proof absorbs and E < 1 would lose",
        "before the first release, 0/0 in (1), Q is H; bonus 4 needs visits after the last step, "
        "where there are none: it is zero there; ties are broken at random",
        _DISCRETE,
    ),
)

_BOX = {
    "beta_k": Printed("sqrt(2·P~(1-P~)·ln iota/N~ + (4E + 7·ln iota)/N~)", "(3.1), Lemma E.14"),
    "iota": Printed("XAK/delta", "after (3.1)"),
    "delta": Printed("XA/K", "Theorems 3.3 and 4.2"),
    "post-processing": Printed("|sum - N^| <= E/4; + E/(2X_{h+1})", "(5.1), (5.2)"),
}
_TREE = {  # log2: Algorithm 4 loops over ceil(log2 K) levels
    "noise on counts": Printed("eps/(3H·log K) per node", "Section 5.1 (1); Algorithm 4")
}
_REPORTS = {"noise on counts": Printed("Lap(3H/eps)", "Section 5.2 (1)")}
_BOXES = (
    _ERROR,
    "noise is drawn on the integers, on losses on multiples of 1/1024, to which they are rounded",
    "updates are solved by Newton's method up to a certified gap, not through (C.1) to (C.3)",
    "nobody acts in x_H: nothing is counted and no loss released there",
)
_REPAIRS = (
    "X leaves out x_H, where nobody acts, in iota, delta and eta",
    "the root of (3.1), Lemmas E.14 and E.15 covers the first term only, as in the display after "
    "(D.1), which is called the same width there",
)
_UC_O_REPS = _Algorithm(
    "Private-UC-O-REPS",
    constants={**_BOX, "eta": Printed("sqrt(ln(XA/H)/K)", "Theorem 3.3")},
    deviations=(*_BOXES, "the logarithm in eta is at least 0.001"),
    repairs=_REPAIRS,
)
_UOB_LBPS = _Algorithm(
    "Private-UOB-LBPS",
    constants={
        **_BOX,
        "eta": Printed("sqrt(X/K)", "Theorem 4.2"),
        "loss estimate": Printed("(l~ + E')/(2E' + 1)/u", "(4.1), (4.2)"),
        "E'": Printed("3H/eps·log(iota)", "Lemmas 5.1 and 5.7"),
        "noise on losses": Printed("Lap(3H/eps)", "Section 5.1 (3)"),
    },
    deviations=(*_BOXES, "(4.1) is clipped to [0, 1], and u is at least 1e-12"),
    settings={"constants": "theory", "loss_estimator": "paper"},
    repairs=_REPAIRS,
)

_PRESETS = (
    _SDP_PE.preset(
        "000",
        ("shuffle", "bits"),
        _RIVER,
        _multiset(0.08508, 379_658, 18_079),
        if_only_sums=Delivered(0.05702, 1e-5, _SUMS),
        constants={
            "beta'": Printed("beta", "Section V-A: not split"),
            "post-processing": _SDP_PE.constants["post-processing"]._replace(where="(4), (5)"),
            "tau": Printed("96·log(2/beta')/eps'^2", "Section IX-A, Algorithm 4"),
            "width": Printed(
                "2C(sqrt(X^2·A·H^5·iota/L) + X^3·A^2·H^5·E·iota/L)", "Algorithm 1, line 9"
            ),
            "episodes of a stage": Printed("2·L_b", "Algorithm 1, line 2"),
            "L_0": Printed("L/(HXA) episodes of each policy", "Algorithms 2 and 3"),
        },
        repairs=("which exploration policy a user plays is drawn, not L_0 users for each",),
        fine="mixture",
    ),
    _SDP_PE.preset(
        "001",
        ("shuffle", "bits"),
        _RIVER,
        _multiset(0.07288, 500_068, 23_813),
        if_only_sums=Delivered(0.04897, 1e-5, _SUMS),
        constants={
            "beta'": Printed("beta/(HXA)", "Section V"),
            "fine exploration": Printed(
                "argmin max sum V^mu/V^pi", "(3)", "the same, pi a mixture of policies"
            ),
            "width": Printed(
                "2C(sqrt(X·A·H^3·iota/L) + X^3·A·H^5·E·iota/L)", "Algorithm 1, line 9"
            ),
            "episodes of a stage": Printed(
                "3·L_b (2·L_b are counted)", "Algorithms 1, 2 and 3", "3·L_b, all counted"
            ),
        },
        deviations=(
            "a stage spends 3L episodes (Algorithms 2 and 3) where line 2 of Algorithm 1 and (4) "
            "count 2L; run literally it would play 1.5·K: 3L are counted",
            "(3) is infinite over deterministic policies: it ranges over their mixtures",
            "who plays pi^ref and who pi_0 is drawn: L users each on average",
        ),
        fine="coverage",
    ),
    _LDP_OBI.preset(
        "002",
        ("local", "laplace"),
        _TOY,
        _UNITS,
        constants={"noise": Printed("Lap(6H/eps)", "Table 1"), "N^p": _MOVES},
        repairs=(_LAST_STEP + "(2, 0)",),
    ),
    _LDP_OBI.preset(
        "002-gaussian",
        ("local", "gaussian"),
        _TOY_DELTA,
        Delivered(
            2.0,
            0.9154,
            "at the claimed epsilon: sigma is H/eps, L2² up to 4H² + 2(H-1)² (H > 2: a bound); "
            "delta is 0.0959 at eps = 0.2, where the claim holds, and 1 at 20",
        ),
        constants={
            "noise": Printed("N(0, (H/eps)^2)", "Table 1"),
            "delta_0": Printed("0.1", "caption of Figure 2"),
            "N^p": _MOVES,
        },
        repairs=(_LAST_STEP + "(2, 0.9603)",),
    ),
    _LDP_OBI.preset(
        "002-randomized-response",
        ("local", "randomized-response"),
        _TOY,
        Delivered(3.309, 0.0, "6H - 2 bits that move, each flipped with that probability"),
        constants={"noise": Printed("Ber(1/(e^(eps/H) - 1))", "Table 1"), "N^p": _MOVES},
        deviations=(
            "1/(e^(eps/H) - 1) is no probability below eps = H·ln 2: refused there; up to H·ln 3 "
            "it flips more than half of the bits, and the less is claimed the more it tells: at "
            "H = 2 a claim of 1.4 delivers 42.87 (51.44 with the last transition). A plus read as "
            "a minus by the scan would explain it",
            "how bits are made and read stands in an appendix that the copy we had lacks: one for "
            "each counter and step, (y - q)/(1 - 2q)",
            "c_3 = S·c_4, which always holds; the caption of Table 1 has sqrt(S)·c_4",
        ),
        repairs=(_LAST_STEP + "(3.971, 0)",),
    ),
    _LDP_PSRL.preset(
        "002-psrl",
        ("local", "laplace"),
        _TOY,
        _UNITS,
        constants={"noise": Printed("Lap(6H/eps)", "Table 1"), "N^p": _MOVES},
        repairs=(_LAST_STEP + "(2, 0)",),
    ),
    _DP_UCBVI.preset(
        "003-jdp",
        ("central", "tree-laplace"),
        _PURE_RIVER,
        Delivered(2.1, 0.0, "6H units in each of 15 nodes on a scale for 3H·log2 K"),
        constants={"noise": Printed("eps/(3H·log K) per node", "Section 5.1")},
        deviations=("the base of log K is left open: 2",),
    ),
    _DP_UCBVI.preset(
        "003-ldp",
        ("local", "laplace"),
        _PURE_RIVER,
        Delivered(2.0, 0.0, "6H units on a scale for 3H"),
        constants={"noise": Printed("Lap(3H/eps)", "Section 5.2")},
    ),
    _UC_O_REPS.preset(
        "004-full-jdp",
        ("central", "tree-laplace"),
        _PURE_RIVER,
        Delivered(
            3.85, 0.0, "4H + XA units (X without x_H) in each of 15 nodes on a scale for 3H·log2 K"
        ),
        constants={
            **_TREE,
            "noise on losses": Printed(
                "eps/(3H·log K) per node, ceil(log K) terms in every release",
                "Section 5.1 (2), 5.1.1; Algorithm 4",
            ),
        },
        deviations=("Algorithm 4 numbers leaves from 1 and never fills leaf 0: they count from 0",),
        padded_losses=True,
    ),
    _UC_O_REPS.preset(
        "004-full-ldp",
        ("local", "laplace"),
        _PURE_RIVER,
        Delivered(3.667, 0.0, "4H + XA units (X without x_H) on a scale for 3H: losses are dense"),
        constants={**_REPORTS, "noise on losses": Printed("Lap(3H/eps)", "Section 5.2 (2)")},
    ),
    _UOB_LBPS.preset(
        "004-bandit-jdp",
        ("central", "tree-laplace"),
        _PURE_RIVER,
        Delivered(2.067, 0.0, "4H units in each of 15 nodes, and 2H in the losses"),
        constants=_TREE,
    ),
    _UOB_LBPS.preset(
        "004-bandit-ldp",
        ("local", "laplace"),
        _PURE_RIVER,
        Delivered(2.0, 0.0, "6H units on a scale for 3H"),
        constants=_REPORTS,
    ),
)

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _PRESETS}
"""By name, in the order of the papers."""


def preset_names() -> list[str]:
    return list(PRESETS)


def get_preset(name: str) -> Preset:
    """The preset of a name, or an error with a suggestion: a paper's number has several, perhaps.

    >>> get_preset("001").learner
    'sdp-pe'
    >>> get_preset("003")
    Traceback (most recent call last):
    ...
    discreet.errors.UnknownNameError: Unknown paper '003'; did you mean '003-jdp' or '003-ldp'?
    """
    if name not in PRESETS:
        begin = [known for known in PRESETS if name and known.startswith(str(name))]
        raise UnknownNameError("paper", str(name), PRESETS, begin=begin)
    return PRESETS[name]
