"""`discreet calibrate`: what a guarantee costs, before anything is collected."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, cast

import typer

from discreet.cli._console import echo_json, print_table, say
from discreet.cli._options import grouped
from discreet.privacy.guarantee import rounded_down, rounded_up

if TYPE_CHECKING:
    from discreet.privacy.costs import CalibrationReport
    from discreet.privacy.mechanisms.registry import Rhythm
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
            help="Mechanism. Left out: central takes the least noise; local takes one-step for "
            "batches and laplace for streams, as in the papers (one-step has less noise)."
        ),
    ] = "auto"
    calibration: Annotated[str, typer.Option(help="exact, or paper for the printed constants.")] = (
        "exact"
    )
    honest: Annotated[
        float, typer.Option(help="Shuffle: fraction of users whose noise can be relied on.")
    ] = 1.0

    def model(self, trust: str) -> "TrustModel":
        """The trust model of a name with this promise."""
        from discreet.privacy.trust import make_trust

        return make_trust(
            trust,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            calibration=self.calibration,
            **({"honest": self.honest} if trust == "shuffle" else {}),
        )


@dataclass(frozen=True)
class Release:
    """Options on what is released: the problem's size, its users, the counters."""

    states: Annotated[int, typer.Option(help="States.")] = 4
    actions: Annotated[int, typer.Option(help="Actions.")] = 2
    horizon: Annotated[int, typer.Option(help="Steps per episode.")] = 6
    users: Annotated[int, typer.Option(help="Users of a batch, or episodes of a stream.")] = 20_000
    rhythm: Annotated[
        str,
        typer.Option(
            help="batch (a release per batch) or stream (one per episode); batch if left out, "
            "unless the mechanism is for streams only."
        ),
    ] = ""
    statistics: Annotated[str, typer.Option(help="Counters to release, separated by commas.")] = (
        "transitions,visits,rewards"
    )
    stationary: Annotated[
        bool, typer.Option("--stationary", help="Pool counters over steps (streams).")
    ] = False

    def cost(self, trust: "TrustModel", rhythm: str, *, verify: bool) -> "CalibrationReport":
        """What this release costs under a trust model."""
        from discreet.mdp.shape import Shape
        from discreet.privacy.costs import calibrate

        return calibrate(
            trust,
            Shape(states=self.states, actions=self.actions, horizon=self.horizon),
            users=self.users,
            rhythm=cast("Rhythm", rhythm),
            statistics=tuple(name.strip() for name in self.statistics.split(",")),
            stationary=self.stationary,
            verify=verify,
        )


def costs(
    promise: Promise,
    release: Release,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run independent accountings and compare them.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON for scripts.")] = False,
) -> None:
    """Noise, expected counts, messages and bytes for a guarantee, and what papers would give."""
    if not promise.trust:
        _compare(promise, release, verify=verify, as_json=json)
        return
    trust = promise.model(promise.trust)
    report = release.cost(trust, release.rhythm or _rhythm(trust), verify=verify)
    if json:
        echo_json(report.to_dict())
    else:
        _print_report(report)


command = grouped(costs)


def _rhythm(trust: "TrustModel") -> "Rhythm":
    """Batches, unless the mechanism asked for exists for streams only."""
    from discreet.privacy.mechanisms.registry import mechanisms

    asked = getattr(trust, "mechanism", "auto")
    streams_only = asked in mechanisms(trust.name, "stream") and asked not in mechanisms(
        trust.name, "batch"
    )
    return "stream" if streams_only else "batch"


def _compare(promise: Promise, release: Release, *, verify: bool, as_json: bool) -> None:
    """All trust models and both rhythms, side by side."""
    from discreet.errors import InvalidInputError

    if promise.mechanism != "auto":
        raise InvalidInputError("A mechanism belongs to one trust model: give --trust as well.")
    pairs = [("central", "batch"), ("shuffle", "batch"), ("local", "batch")]
    pairs += [("central", "stream"), ("local", "stream")]
    asked = release.rhythm
    reports = [
        release.cost(promise.model(trust), rhythm, verify=verify)
        for trust, rhythm in pairs
        if asked in ("", rhythm)
    ]
    if not reports:
        raise InvalidInputError(f"Expected rhythm batch or stream, got rhythm={asked!r}.")
    if as_json:
        echo_json({"results": [r.to_dict() for r in reports]})
        return
    print_table(
        f"Noise on one counter after {release.users:,} users",
        (
            "trust",
            "rhythm",
            "mechanism",
            "guarantee",
            "noise std",
            "of a visit count",
            "papers' noise",
        ),
        [_comparison_row(r) for r in reports],
        right=(4, 5, 6),
        caption=_relation(reports[0]),
    )


def _comparison_row(report: "CalibrationReport") -> tuple[str, ...]:
    name = "visits" if "visits" in report.noise_std else next(iter(report.noise_std))
    noise = report.noise_std[name]
    printed = (report.paper_noise_std or {}).get(name)
    return (
        report.trust,
        report.rhythm,
        report.mechanism,
        _pair(report.guarantee.epsilon, report.guarantee.delta) + f"-{report.guarantee.notion}",
        _number(noise),
        _share(noise, report.expected_count[name]),
        _number(printed),
    )


def _print_report(report: "CalibrationReport") -> None:
    shape = report.shape
    print_table(
        f"{report.trust} {report.rhythm}, mechanism {report.mechanism} ({report.calibration}): "
        f"S={shape.states}, A={shape.actions}, H={shape.horizon}, {report.users:,} users",
        ("statistic", "noise std", "mean count", "noise / count", "papers' noise"),
        [
            (
                name,
                _number(noise),
                _number(report.expected_count[name]),
                _share(noise, report.expected_count[name]),
                _number((report.paper_noise_std or {}).get(name)),
            )
            for name, noise in report.noise_std.items()
        ],
        right=(1, 2, 3, 4),
        caption="Mean counts per step if users spread evenly over states and actions.",
    )
    say(f"Guarantee: {report.guarantee}.")
    for text in report.guarantee.assumptions:
        say(f"  assuming that {text}")
    for line in _details(report):
        say(line)


def _details(report: "CalibrationReport") -> list[str]:
    lines = [_choice(report)] if report.alternatives else []
    if report.noise_std_per_user:
        noise = next(iter(report.noise_std_per_user.values()))
        lines.append(f"One user's report: noise std {_number(noise)} per counter.")
    if report.noise_bits:
        lines.append(_bits(report.noise_bits))
    if report.messages_per_user is not None:
        several = f"{report.messages_per_user:,} messages"
        count = "one message" if report.messages_per_user == 1 else several
        lines.append(f"Each user sends {count}, {report.bytes_per_user:,} bytes.")
    if report.delivered_by_paper:
        epsilon, delta = report.delivered_by_paper["epsilon"], report.delivered_by_paper["delta"]
        lines.append(
            f"The papers' constants claim {report.claimed_by_paper or 'the same'} and deliver "
            f"{_pair(epsilon, delta)}."
        )
    worst = max((report.delta_of_integer_messages or {"none": 0.0}).values())
    if worst > report.guarantee.delta:
        lines.append(
            f"As printed, with integers instead of bits, delta would be at least "
            f"{rounded_down(worst, 3)} at every epsilon."
        )
    for route in report.accountings:
        kind = {"exact": "epsilon", "approximate": "about"}.get(route["kind"], "at most")
        lines.append(f"Accounting by {route['route']}: {kind} {rounded_up(route['epsilon'], 6)}.")
    return lines


def _bits(bits: dict[str, float]) -> str:
    """How many noise bits, and how they are drawn."""
    law = f"one with probability {bits['probability']:.4g}"
    if bits["drawn_from_a_table"]:
        law = "the number of ones drawn from a table"
    return (
        f"Noise bits per user and counter: {bits['per_user_and_counter']:.0f}, {law} "
        f"(as good as {bits['fair_bits_in_all']:,.0f} fair bits in all)."
    )


def _choice(report: "CalibrationReport") -> str:
    """Which mechanism was taken, and what the others would have cost."""
    noise = dict(report.alternatives or {})
    taken = noise.pop(report.mechanism)
    others = ", ".join(f"{name} {_number(value)}" for name, value in noise.items())
    against = f" (against {others})" if others else ""
    return f"Mechanism {report.mechanism}: the least noise here, std {_number(taken)}{against}."


def _relation(report: "CalibrationReport") -> str:
    return f"Unit: {report.guarantee.unit}. Neighbours: {report.guarantee.neighbours}."


def _pair(epsilon: float | None, delta: float | None) -> str:
    first = rounded_up(math.inf if epsilon is None else epsilon)
    return f"({first}, {rounded_up(delta or 0, 3)})"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _share(noise: float, count: float) -> str:
    percent = 100 * noise / count
    return f"{percent:,.0f}%" if percent >= 100 else f"{percent:.3g}%"
