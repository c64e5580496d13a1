"""`Guarantee`: of what, to whom, against whom, under which assumptions.

An epsilon is never printed without its notion, delta, unit and neighbouring relation, and never
rounded to something smaller: `rounded_up` and `rounded_down` write every number that a guarantee
consists of or rests on. What a guarantee may cost is rounded up; noise, and what others are
allowed, is rounded down.
"""

import math
from dataclasses import asdict, dataclass, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Literal

from discreet import _validate
from discreet.errors import InvalidInputError

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet._types import Plain

Notion = Literal["JDP", "LDP", "SDP", "none"]

NOTIONS: dict[str, str] = {
    "JDP": "joint differential privacy: what all other users receive",
    "LDP": "local differential privacy: each user's report by itself",
    "SDP": "shuffle differential privacy: the analyser's view after the shuffler",
    "none": "no privacy",
}
_DISTINCT = "every user takes part once: batches and reports belong to distinct users"
_RETURNING = (
    "one person takes part at most {} times, {}; that somebody took part, and when, is public"
)
_DRAWN = (
    "each person has one name; at most {} episodes of each, drawn at random, are counted; how many "
    "people there are is public, how many episodes each has is not"
)
ASSUMPTIONS: dict[str, tuple[str, ...]] = {
    "JDP": (
        "the learner is trusted with raw episodes and publishes nothing but its policies",
        "other users may collude against one; the user's own policy is not protected from them",
        _DISTINCT,
    ),
    "LDP": ("nobody is trusted; the user's own device adds the noise honestly", _DISTINCT),
    "SDP": (
        "the shuffler does not collude with the analyser and forwards a batch whole or not at all",
        "all users of a batch add their noise honestly",
        _DISTINCT,
    ),
    "none": (),
}
"""Who is trusted, who must not collude, what users must not do, for each notion."""


def shuffled(honest: float, noise: str, participations: int = 1) -> tuple[str, ...]:
    """The assumptions of a shuffled release in which a fraction of users adds its ``noise``.

    >>> shuffled(0.9, "noise")[1]
    'at least 0.9 of the users of a batch add their noise honestly'
    """
    # All digits: a larger fraction is more than was asked for, a smaller one less than is needed.
    who = "all users" if honest == 1 else f"at least {float(honest)!r} of the users"
    share = f"{who} of a batch add their {noise} honestly"
    others = tuple(share if "honestly" in text else text for text in ASSUMPTIONS["SDP"])
    return assumed(others, participations, "once in a batch")


def assumed(assumptions: tuple[str, ...], participations: int, apart: str) -> tuple[str, ...]:
    """The assumptions for people who take part so many times, ``apart`` saying how.

    >>> assumed(("nobody is trusted", _DISTINCT), 2, "once in a batch")[1][:55]
    'one person takes part at most 2 times, once in a batch;'
    """
    if participations == 1:
        return assumptions
    returning = _RETURNING.format(participations, apart)
    return tuple(returning if text == _DISTINCT else text for text in assumptions)


def drawn_of(participations: int) -> tuple[str, ...]:
    """The assumptions of a central release that holds so many episodes of each person at once.

    >>> drawn_of(2)[2][:57]
    'each person has one name; at most 2 episodes of each, dra'
    """
    return tuple(
        _DRAWN.format(participations) if text == _DISTINCT else text for text in ASSUMPTIONS["JDP"]
    )


def unit_of(participations: int) -> str:
    """What neighbours differ in.

    >>> unit_of(4)
    'one person, up to 4 episodes'
    """
    return UNIT if participations == 1 else f"one person, up to {participations} episodes"


UNIT = "one user's whole episode"
REHEARSED = "SIMULATED, protects nobody"
"""What a rehearsal says wherever it prints a guarantee."""
NEIGHBOURS = "replace-one"


def rounded_up(value: "float | Fraction", digits: int = 4) -> str:
    """An epsilon or delta to read: the least number of ``digits`` digits that is not below it.

    A double stands for its shortest decimal: 0.1 is one tenth. Fractions are taken as they are.

    >>> rounded_up(1.00049), rounded_up(0.1), rounded_up(1e-6), rounded_up(float("inf"))
    ('1.001', '0.1', '1e-06', 'inf')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: "float | Fraction", digits: int = 4) -> str:
    """Noise, or a lower bound, to read: the greatest number that is not above it.

    >>> rounded_down(0.99999), rounded_down(0.05)
    ('0.9999', '0.05')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def odds(epsilon: float) -> str:
    """What an epsilon above 10 lets through, in a sentence; of others nothing.

    >>> odds(500)[:75]
    "epsilon = 500: an observer's odds about one person may change by a factor o"
    >>> "10^218" in odds(500), odds(10)
    (True, '')
    """
    if not 10 < epsilon < math.inf:
        return ""
    power = math.ceil(epsilon / math.log(10) * (1 + 1e-12))  # upwards, whatever doubles round
    factor = f"e^{rounded_up(epsilon)} < 10^{power}" if epsilon < 1e6 else "e^1000000 and more"
    return (
        f"epsilon = {rounded_up(epsilon)}: an observer's odds about one person may change by a "
        f"factor of up to {factor}; that is hardly a guarantee. Usual values are 1 or a few."
    )


def rounded_noise(deviation: float) -> str:
    """A standard deviation in a table: four digits, and all those before the point.

    >>> rounded_noise(25.3478), rounded_noise(2534.78)
    ('25.34', '2,534')
    """
    return f"{math.floor(deviation):,}" if deviation >= 1000 else rounded_down(deviation)


def _rounded(value: "float | Fraction", digits: int, rounding: str) -> str:
    context = Context(prec=digits, rounding=rounding)
    if not isinstance(value, float | int):
        exact = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    else:
        exact = context.plus(Decimal(repr(float(value))))
    text = f"{float(exact):.{min(digits, 15)}g}"
    return text if Decimal(text) == exact else str(exact)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(epsilon, delta) with everything needed to read it.

    Attributes:
        notion: JDP, LDP, SDP or none.
        epsilon: the delivered epsilon (``inf`` where there is none).
        delta: the delivered delta.
        assumptions: who is trusted, who must not collude, what users must not do.
        claimed: for printed constants that do not deliver what they claim, the claim as text.
        rho: of zero-concentrated privacy, where that was the budget; epsilon follows from it.
        participations: episodes of one person that neighbours may differ in.
        simulated: True if the noise came from the seeded simulation sampler: fine for
            research, worth nothing for real users.
    """

    notion: Notion
    epsilon: float
    delta: float
    assumptions: tuple[str, ...] = ()
    neighbours: str = NEIGHBOURS
    claimed: str | None = None
    simulated: bool = True
    rho: float | None = None
    participations: int = 1

    def __post_init__(self) -> None:
        _validate.choice(NOTIONS, notion=self.notion)
        _validate.count(participations=self.participations)
        if self.notion != "none" and not self.epsilon >= 0:
            raise InvalidInputError(f"Expected epsilon >= 0, got epsilon={self.epsilon!r}.")
        _validate.probability(delta=self.delta)

    @property
    def unit(self) -> str:
        """What neighbours differ in."""
        return unit_of(self.participations)

    def __str__(self) -> str:
        """One line for tables and legends."""
        if self.notion == "none":
            return "no privacy"
        pair = f"{rounded_up(self.epsilon)}, {rounded_up(self.delta, 3)}"
        budget = "" if self.rho is None else f" by {rounded_up(self.rho)}-zCDP"
        text = f"({pair})-{self.notion}{budget}, {self.unit}, {self.neighbours}"
        return f"{text} [claimed {self.claimed}]" if self.claimed else text

    def to_dict(self) -> "dict[str, Plain]":
        """Plain values for JSON; an infinite epsilon becomes None."""
        epsilon = self.epsilon if math.isfinite(self.epsilon) else None
        own = {"epsilon": epsilon, "assumptions": list(self.assumptions), "unit": self.unit}
        plain = asdict(self) | own
        return {name: value for name, value in plain.items() if (name, value) != ("rho", None)}

    def stamped(self, *, secure: bool) -> "Guarantee":
        """The same, marked by the sampler that drew the noise."""
        return replace(self, simulated=not secure)


@dataclass(frozen=True, kw_only=True)
class Rehearsal(Guarantee):
    """Of a rehearsal: what the same thing with secure noise would guarantee."""

    def __str__(self) -> str:
        """One line that nobody takes for a guarantee."""
        return f"{REHEARSED}: {Guarantee.__str__(self)}"


def said(guarantee: Guarantee) -> Guarantee:
    """The guarantee, as a `Rehearsal` if its noise was simulated."""
    if not guarantee.simulated or guarantee.notion == "none":
        return guarantee
    values = {item.name: getattr(guarantee, item.name) for item in fields(guarantee)}
    return Rehearsal(**values)


NO_GUARANTEE = Guarantee(notion="none", epsilon=math.inf, delta=0.0)
"""Of the non-private twin: nothing."""


_BILLBOARD = "what all other users receive is computed from this release (billboard lemma)"


@dataclass(frozen=True)
class Implied:
    """A guarantee that holds because another one does."""

    guarantee: Guarantee
    reason: str

    def to_dict(self) -> "dict[str, Plain]":
        """Plain values for JSON."""
        return {**self.guarantee.to_dict(), "reason": self.reason}


def implied(guarantee: Guarantee) -> tuple[Implied, ...]:
    """What follows from it: shuffle and local privacy imply joint privacy.

    What all other users receive is a function of the release and of their own data. If the release
    is (epsilon, delta)-DP in one user's episode, so is what the others receive: the billboard lemma
    (Hsu, Huang, Roth, Roughgarden and Wu 2014; 001, Section VII).

    >>> [found] = implied(Guarantee(notion="SDP", epsilon=1.0, delta=1e-6))
    >>> print(found.guarantee)
    (1, 1e-06)-JDP, one user's whole episode, replace-one
    """
    if guarantee.notion not in ("SDP", "LDP"):
        return ()
    others = ASSUMPTIONS["JDP"][1]
    joint = replace(guarantee, notion="JDP", assumptions=(*guarantee.assumptions, others))
    return (Implied(joint, _BILLBOARD),)
