"""The charter: what a study guarantees, immutable. Its SHA-256 is the study's name.

Devices and shuffler compute from it how much noise every report must hold (`description`); an
analyser cannot publish a manifest with less. That the noise keeps the guarantee is proven by the
certificate inside (`verify`), for the limit of many rare noise messages; that a batch of n users is
no worse than the limit is checked when it is announced (`Charter.check_noise`).
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from discreet._files import read_file
from discreet._types import JsonObject
from discreet.data.vocabulary import Vocabulary
from discreet.device import ENVELOPE, DeviceError, MessageGroup
from discreet.device.description import STATISTICS, Plain, fraction, plain_fraction
from discreet.device.histogram import HistogramDevice
from discreet.errors import CalibrationError, InvalidInputError
from discreet.privacy.accounting.piles import honest_users, mean_of_all
from discreet.privacy.certificates import verify as verifier
from discreet.privacy.guarantee import NEIGHBOURS, REHEARSED, rounded_down, rounded_up, unit_of
from discreet.service.protocol import canonical

VERSION = 1
_LARGEST_CHARTER = 1 << 20
_SKEW = 300
"""Seconds by which the shuffler's clock may be behind before it finds a deadline too far."""
_NAMES = ("states", "actions", "steps")
LINKED = "which batches one ticket was used in; the analyser sees no ticket and cannot link them"
"""What the shuffler knows of somebody who takes part more than once."""
_NO_CHARTER = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, verifier.Refused)
"""What reading other fields can raise."""


@dataclass(frozen=True, kw_only=True)
class Charter(canonical.Document):
    """What is guaranteed. Fields of a charter leave out participations=1.

    Attributes:
        purpose: of the study, in words for its participants.
        names: what states, actions and steps are called.
        start: states in which an episode can begin, ascending.
        statistics: what is released.
        last_transitions: whether transitions of the last step are.
        epsilon: guaranteed to every user.
        delta: guaranteed to every user.
        honest: fraction of users whose noise is counted on.
        participations: batches that one person's ticket is worth, which are protected together.
        mean: lambda, the noise that honest users add together to every cell.
        certificate: that ``mean`` keeps the guarantee.
        min_users: no batch is smaller.
        patience: seconds for which a batch may stay open.
        signing_key: the analyser's Ed25519 public key.
        rehearsal: nobody is protected: users are simulated.
        allowed: which actions are possible where, as `discreet.data.Vocabulary` lists it; pages
            offer no others.
    """

    purpose: str
    names: Mapping[str, Sequence[str]]
    start: tuple[int, ...]
    statistics: tuple[str, ...]
    last_transitions: bool
    epsilon: Fraction
    delta: Fraction
    honest: Fraction
    mean: Fraction
    certificate: JsonObject = field(repr=False)
    min_users: int
    patience: int
    signing_key: bytes
    participations: int = 1
    rehearsal: bool = False
    allowed: Sequence[JsonObject] = ()

    def __post_init__(self) -> None:
        for broken, sentence in self._rules():
            if broken:
                raise InvalidInputError(
                    f"Expected {sentence} in a charter; `discreet service init` writes them so."
                )
        if self.allowed:  # refuses what it does not name
            Vocabulary.from_dict({**self.names, "allowed": self.allowed})
        self.smallest  # noqa: B018 - refuses what no device can encode

    def _rules(self) -> list[tuple[bool, str]]:
        names = self.names
        known = set(names) == set(_NAMES) and all(names[kind] for kind in _NAMES)
        return [
            (not known, "names of states, actions and steps"),
            (any(len(set(names[k])) != len(names[k]) for k in names), "every name once"),
            (self.min_users < 2, f"batches of two users or more (got {self.min_users})"),
            (
                self.participations < 1,
                f"one participation or more (got {self.participations})",
            ),
            (self.patience < 1, f"a patience of a second or more (got {self.patience})"),
            (not 0 < self.honest <= 1, f"an honest fraction in (0, 1] (got {self.honest})"),
            (
                self.epsilon <= 0 or not 0 < self.delta < 1,
                f"epsilon > 0 and delta in (0, 1) (got {self.epsilon} and {self.delta})",
            ),
            (self.mean <= 0, f"noise of a mean above zero (got {self.mean})"),
            (
                list(self.start) != sorted(set(self.start) & set(range(self.states)))
                or not self.start,
                f"start states in ascending order (got {list(self.start)})",
            ),
            (
                len(self.signing_key) != 32,
                f"a signing key of 32 bytes (got {len(self.signing_key)})",
            ),
        ]

    @property
    def states(self) -> int:
        return len(self.names["states"])

    @property
    def actions(self) -> int:
        return len(self.names["actions"])

    @property
    def horizon(self) -> int:
        return len(self.names["steps"])

    def fields(self) -> JsonObject:
        return {
            "version": VERSION,
            "kind": "charter",
            "purpose": self.purpose,
            "names": {kind: list(self.names[kind]) for kind in _NAMES},
            "start": list(self.start),
            "statistics": list(self.statistics),
            "last_transitions": self.last_transitions,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "honest": str(self.honest),
            "lambda": plain_fraction(self.mean.numerator, self.mean.denominator),
            "certificate": dict(self.certificate),
            "min_users": self.min_users,
            "patience": self.patience,
            "signing_key": self.signing_key.hex(),
            "rehearsal": self.rehearsal,
            **({"participations": self.participations} if self.participations > 1 else {}),
            **({"allowed": list(self.allowed)} if self.allowed else {}),
        }

    @property
    def id(self) -> bytes:
        """The study's name, which is the charter's hash."""
        return self.hash

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.from_bytes(read_file(path))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The charter that these bytes are; its certificate is not checked yet."""
        if len(data) > _LARGEST_CHARTER:
            raise InvalidInputError(
                f"Expected a charter of at most {_LARGEST_CHARTER} bytes, got {len(data)}; this is "
                f"another file."
            )
        fields = canonical.from_bytes(data, "charter")
        if type(fields.get("version")) is not int or fields["version"] != VERSION:
            raise InvalidInputError(f"unknownVersion: Expected a charter of version {VERSION}.")
        try:
            charter = cls(**_read(fields))
            same = charter.data == data
        except InvalidInputError:
            raise
        except _NO_CHARTER as error:
            raise InvalidInputError(
                f"Expected a charter with all its fields, each of its kind ({error})."
            ) from None
        if not same:
            raise InvalidInputError("Expected a charter without unknown fields.")
        return charter

    def check_rehearsal(self, allowed: bool) -> None:
        """Refuse the charter of a rehearsal unless somebody has asked for one."""
        if self.rehearsal and not allowed:
            raise InvalidInputError(
                "This charter is of a rehearsal and protects nobody; say --rehearsal to go on."
            )

    @property
    def deadline(self) -> int:
        """Seconds that the analyser gives a batch: room for a shuffler whose clock is behind."""
        return self.patience - min(_SKEW, self.patience // 10)

    def intensity(self, users: int) -> Fraction:
        """The mean of all users' noise on one cell, so that the honest ones suffice."""
        return mean_of_all(self.mean, self.honest, users)

    def description(self, policy: Sequence[Sequence[int]], users: int) -> dict[str, Plain]:
        """What a device of a batch runs: all of it follows from charter, policy and users."""
        mean = self.intensity(users)
        return {
            "version": 1,
            "encoder": HistogramDevice.name,
            "states": self.states,
            "actions": self.actions,
            "horizon": self.horizon,
            "policy": [list(row) for row in policy],
            "start": list(self.start),
            "statistics": list(self.statistics),
            "last_transitions": self.last_transitions,
            "users": users,
            "lambda": plain_fraction(mean.numerator, mean.denominator),
        }

    def device(self, policy: Sequence[Sequence[int]], users: int) -> HistogramDevice:
        try:
            return HistogramDevice(self.description(policy, users))
        except DeviceError as error:
            raise InvalidInputError(str(error)) from None

    @cached_property
    def smallest(self) -> HistogramDevice:
        """The encoder of the smallest batch: no other batch has longer reports.

        Every policy has one action per state, so the cells of a group are the same for all of them,
        and the noise of a report falls with the number of users who are counted on.
        """
        return self.device([[0] * self.states] * self.horizon, self.min_users)

    @property
    def largest_body(self) -> int:
        """Bytes of the envelopes of a report, at most."""
        return ENVELOPE * self.smallest.messages

    def tolerated(self, users: int, group: MessageGroup) -> int:
        """Envelopes of a group that may be unreadable: all of them may have been noise.

        As many as the noise messages of the users who are not counted on. Without any such number
        of them the rest of the noise is that of `honest_users` at least, which is what was proven.
        """
        return (users - honest_users(self.honest, users)) * group.noise

    def check_noise(self, users: int, groups: Sequence[MessageGroup]) -> None:
        """Refuse a batch whose finite noise the limit does not cover.

        No such batch is known: this guards what the certificate, which is about the limit, cannot
        say. The analyser checks before it announces, the shuffler before it lets anybody send.
        """
        from discreet.privacy.accounting.shuffle_curves import batch_trials, check_batch

        try:
            check_batch(batch_trials(tuple(groups), honest_users(self.honest, users)), self.mean)
        except CalibrationError as error:
            raise InvalidInputError(str(error)) from None

    def prepare(self) -> None:
        """Load the compiled code of `check_noise`, or compile it, once.

        A shuffler does so when it starts: where compiled code cannot be kept, that is the moment to
        hear of it, and not the first batch.

        Raises:
            DiscreetError: there is no place for it.
        """
        with contextlib.suppress(InvalidInputError):  # a batch that is announced is refused by name
            self.check_noise(self.min_users, self.smallest.groups)

    def verify(self) -> Fraction:
        """Check the certificate, and that it is one of this guarantee; the proven delta.

        Raises:
            InvalidInputError: the guarantee is not proven.
        """
        said = dict(self.certificate)
        try:
            bound = verifier.check(said)
            verifier.compare(said, self._proof)
        except verifier.Refused as refused:
            raise InvalidInputError(f"The charter's certificate is refused: {refused}") from None
        return bound

    @property
    def _proof(self) -> dict[str, Any]:
        """What the certificate must be one of: shuffled histograms, in the limit of all batches."""
        return {
            "release": {
                "trust": "shuffle",
                "mechanism": HistogramDevice.name,
                "schedule": "batch",
                "participations": self.participations,
                "states": self.states,
                "actions": self.actions,
                "horizon": self.horizon,
                "statistics": [name for name in verifier.STATISTICS if name in self.statistics],
                "last_transitions": self.last_transitions,
                "users": None,
                "honest": str(self.honest),
            },
            "noise": {"name": "poisson", "mean": str(self.mean)},
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
        }

    @property
    def guarantee(self) -> str:
        stamp = f"{REHEARSED}: " if self.rehearsal else ""
        pair = f"{rounded_up(self.epsilon)}, {rounded_up(self.delta, 3)}"
        return f"{stamp}({pair})-SDP, {unit_of(self.participations)}, {NEIGHBOURS}"

    @property
    def collusion(self) -> dict[str, str]:
        """Who works together -> what that gives them."""
        returning = "shuffler alone, of people who return"
        covered = f"up to {rounded_down(100 * (1 - self.honest))}% of a batch's users with analyser"
        return {
            "shuffler with analyser": "no protection: together they see every episode",
            "shuffler alone, or enroller with analyser, inventing users": (
                "a batch of one real user: no protection but that user's own noise"
            ),
            **({covered: "nothing: the guarantee holds"} if self.honest < 1 else {}),
            **({returning: LINKED} if self.participations > 1 else {}),
            "users beyond those counted on, with analyser": (
                "less noise, so a larger epsilon than guaranteed"
            ),
        }


def layout_of(groups: Sequence[MessageGroup]) -> list[list[int]]:
    """Cells, noise messages per user and weight of every group, as a manifest states them."""
    return [[one.cells, one.noise, one.weight] for one in groups]


def _read(fields: JsonObject) -> dict[str, Any]:
    """Arguments of a charter from its plain fields."""
    statistics = [name for name in STATISTICS if name in fields["statistics"]]
    integers = {name: fields[name] for name in ("min_users", "patience")}
    integers["participations"] = fields.get("participations", 1)
    truths = {name: fields[name] for name in ("last_transitions", "rehearsal")}
    if any(type(n) is not int for n in integers.values()) or not isinstance(fields["purpose"], str):
        raise TypeError("min_users, patience, participations or purpose")
    if any(type(truth) is not bool for truth in truths.values()):
        raise TypeError("last_transitions or rehearsal")
    return {
        **integers,
        **truths,
        "purpose": fields["purpose"],
        "names": {kind: _names(names) for kind, names in fields["names"].items()},
        "start": tuple(fields["start"]),
        "statistics": tuple(statistics),
        "epsilon": verifier.rational(fields["epsilon"]),
        "delta": verifier.rational(fields["delta"]),
        "honest": verifier.rational(fields["honest"]),
        "mean": Fraction(*fraction(fields["lambda"], "lambda")),
        "certificate": fields["certificate"],
        "allowed": tuple(fields.get("allowed", ())),
        "signing_key": bytes.fromhex(fields["signing_key"]),
    }


def _names(names: object) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("names")
    return tuple(names)
