"""Settings of learners: one frozen base for all, with printed constants and practical ones.

``constants="theory"`` is the printed formula: the defaults of the fields. ``"practical"`` is one
fixed set of multipliers per learner, ``PRACTICAL``, chosen on problems that are *not* reported
(random MDPs, chains, grids; research/constants.md, with two exceptions)
and used for all trust models, epsilons and environments alike; a run that asks for none of the two
gets them. What a caller gives wins over both.

A learner of its own settings writes a frozen dataclass: the annotation of a field (a number, a
truth value, `Literal` words, a tuple of these, or None besides) is checked by `Settings`, rules
beyond it in `Settings.check`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args, get_type_hints

from discreet import _validate
from discreet._settings import check_names, checked
from discreet._types import Plain
from discreet.errors import InvalidInputError, UnsupportedError

ConstantSet = Literal["theory", "practical"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a caller may choose of one learner.

    Attributes:
        constants: which set of values the caller started from.
    """

    constants: ConstantSet = "theory"

    PRACTICAL: ClassVar[Mapping[str, object]] = {}
    """What practical constants change."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            checked(item.name, getattr(self, item.name), hints[item.name])
        self.check()

    def check(self) -> None:
        """Rules that an annotation cannot say; raises with the value, the rule and the remedy."""

    @classmethod
    def theory(cls, **given: object) -> Self:
        """The printed constants, with what is given instead."""
        return cls.choose({"constants": "theory", **given})

    @classmethod
    def practical(cls, **given: object) -> Self:
        """The practical constants, with what is given instead."""
        return cls.choose({"constants": "practical", **given})

    @classmethod
    def choose(cls, given: Mapping[str, object], *, learner: str = "") -> Self:
        """Settings from keywords or from a TOML table, whose lists stand for tuples.

        An unknown name gets a suggestion; the message names the ``learner``.
        """
        owner = f" of {learner!r}" if learner else ""
        known = [item.name for item in fields(cls)]
        if "batches" in given and "batches" not in known:
            raise UnsupportedError(
                f"Learner {learner!r} asks for its users in its own way and cannot keep to "
                f"batches={given['batches']!r}; leave batches out, or use a learner that asks for "
                f"batches, for instance 'flow-ucb'."
            )
        check_names(f"setting{owner}", given, known)
        constants = given.get("constants", "practical")
        _validate.choice(get_args(ConstantSet), constants=constants)
        usual = cls.PRACTICAL if constants == "practical" else {}
        chosen: dict[str, Any] = {**usual, **given, "constants": constants}
        for name, value in chosen.items():
            chosen[name] = tuple(value) if isinstance(value, list) else value
        return cls(**chosen)

    def to_dict(self) -> dict[str, Plain]:
        """Every setting as a plain value (JSON): tuples become lists."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}

    def to_toml(self) -> dict[str, Plain]:
        """The same without what is None, which TOML cannot say; `choose` reads it back."""
        return {name: value for name, value in self.to_dict().items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class OwnSettings(Settings):
    """Settings of a learner of ours: nothing is printed, so there is one set of constants."""

    constants: ConstantSet = "practical"

    def check(self) -> None:
        """There are no printed constants to ask for."""
        if self.constants == "theory":
            raise InvalidInputError(
                "Expected constants='practical', got constants='theory': no bound is proven for "
                "this learner, so it has no printed constants; drop the setting."
            )

    def to_dict(self) -> dict[str, Plain]:
        """Every setting but the set of constants, which needs no name."""
        return {name: value for name, value in super().to_dict().items() if name != "constants"}


@dataclass(frozen=True, kw_only=True)
class ContinualSettings(Settings):
    """What all learners of the continual schedule have.

    Attributes:
        stationary: add up the counts of all steps, which needs an MDP whose steps are alike; None
            does so where the MDP is stationary.
    """

    stationary: bool | None = False

    @property
    def last_transitions(self) -> bool:
        """Whether the transition of the last step is counted."""
        return True


@dataclass(frozen=True, kw_only=True)
class BonusSettings(ContinualSettings):
    """A printed bonus for what is not known.

    Attributes:
        bonus_scale: multiplies the terms of the bonus that pay for few visits; one in theory.
        failure: the probability with which the confidence bounds may fail.
    """

    bonus_scale: float = 1.0
    failure: float = 0.1

    def check(self) -> None:
        """A multiplier may be zero, not negative."""
        super().check()
        not_negative(bonus_scale=self.bonus_scale)
        failure_probability(self.failure)


@dataclass(frozen=True, kw_only=True)
class NoisyBonusSettings(BonusSettings):
    """A printed bonus that also pays for noise.

    Attributes:
        privacy_scale: multiplies the terms of the bonus that pay for noise; one in theory.
        error_scale: multiplies the bound on the noise of a counter; one in theory.
    """

    privacy_scale: float = 1.0
    error_scale: float = 1.0

    def check(self) -> None:
        """Multipliers may be zero, not negative."""
        super().check()
        not_negative(privacy_scale=self.privacy_scale, error_scale=self.error_scale)


def at_least_two_batches(batches: int | None) -> None:
    """One to learn from, and the last one."""
    if batches is not None and batches < 2:
        raise InvalidInputError(
            f"Expected batches >= 2, got batches={batches!r}: the first batch explores and the "
            "last plays what was learnt; leave batches out for as many as it takes, or take the "
            "learner 'trial' with aim='policy', which is one batch."
        )


def not_negative(**values: float) -> None:
    """Each value is at least zero."""
    for name, value in values.items():
        if value < 0:
            raise InvalidInputError(f"Expected {name} >= 0, got {name}={value!r}.")


def failure_probability(failure: float) -> None:
    """A probability above zero: the theory may fail so often."""
    _validate.positive(failure=failure)
    _validate.probability(failure=failure)
