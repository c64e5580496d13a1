"""Options that `discreet calibrate` and `discreet certify` share: the promise and the release."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._options import users_option

if TYPE_CHECKING:
    from discreet.mdp.shape import Shape
    from discreet.privacy.trust import TrustModel


@dataclass(frozen=True)
class Promise:
    """Options on what is promised, and to whom."""

    epsilon: Annotated[float, typer.Option(help="Wanted epsilon.")] = 1.0
    delta: Annotated[float, typer.Option(help="Wanted delta; 0 asks for a pure epsilon.")] = 1e-6
    trust: Annotated[
        str, typer.Option(help="central, local, shuffle or none; all of them if left out.")
    ] = ""
    mechanism: Annotated[
        str,
        typer.Option(
            help="Mechanism. Left out: central takes the least noise; local takes split for "
            "batches and laplace for streams, as in the papers (one-step has less noise)."
        ),
    ] = "auto"
    honest: Annotated[
        float, typer.Option(help="Shuffle: fraction of users whose noise can be relied on.")
    ] = 1.0

    def model(self, trust: str, calibration: str = "exact") -> "TrustModel":
        """The trust model of a name with this promise."""
        from discreet.errors import InvalidInputError
        from discreet.privacy.trust import make_trust

        if self.trust not in ("", "shuffle") and self.honest != 1:
            raise InvalidInputError(
                f"--honest belongs to --trust shuffle, got --trust {self.trust}; leave it out."
            )
        if trust == "none":
            return make_trust(trust)
        return make_trust(
            trust,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            calibration=calibration,
            **({"honest": self.honest} if trust == "shuffle" else {}),
        )


@dataclass(frozen=True)
class Release:
    """Options on what is released: the problem's size, its users, the counters."""

    states: Annotated[int, typer.Option(help="States.")] = 4
    actions: Annotated[int, typer.Option(help="Actions.")] = 2
    horizon: Annotated[int, typer.Option(help="Steps per episode.")] = 6
    users: Annotated[int, users_option("Users of a batch, or episodes of a stream.")] = 20_000
    statistics: Annotated[
        str,
        typer.Option(
            help="Counters to release, separated by commas. Left out: transitions,visits,rewards; "
            "of shuffle by classes transitions,rewards, which tell visits as well."
        ),
    ] = ""
    stationary: Annotated[
        bool, typer.Option("--stationary", help="Pool counters over steps (streams).")
    ] = False

    @property
    def shape(self) -> "Shape":
        """The problem's size."""
        from discreet.mdp.shape import Shape

        return Shape(states=self.states, actions=self.actions, horizon=self.horizon)

    @property
    def counters(self) -> tuple[str, ...] | None:
        """The statistics by name; None if the choice is left open."""
        if not self.statistics:
            return None
        return tuple(name.strip() for name in self.statistics.split(","))


def streams_only(trust: str, mechanism: str) -> bool:
    """Does this mechanism exist for streams, and not for batches?"""
    from discreet.privacy.mechanisms.registry import mechanisms

    return mechanism in mechanisms(trust, "continual") and mechanism not in mechanisms(
        trust, "batch"
    )
