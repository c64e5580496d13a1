"""`discreet calibrate`: what a guarantee costs, before anything is collected."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from discreet.cli.options import GuaranteeOptions, Json, ReleaseOptions, grouped
from discreet.cli.output import Table, answer, warn_of_guarantee
from discreet.privacy.guarantee import rounded_down, rounded_noise, rounded_up

if TYPE_CHECKING:
    from discreet.privacy.costs import CalibrationReport
    from discreet.privacy.mechanisms.registry import Schedule


def costs(
    guarantee: GuaranteeOptions,
    release: ReleaseOptions,
    calibration: Annotated[
        str, typer.Option(help="exact, or paper for the constants as printed.")
    ] = "exact",
    schedule: Annotated[
        str,
        typer.Option(
            help="batch (a release per batch) or continual (one per episode). Left out: batch, and "
            "without --trust both."
        ),
    ] = "",
    learner: Annotated[
        str,
        typer.Option(
            help="With --trust: also what all users send in a whole run of this learner, whose "
            "batches are those of a simulation with --users episodes on a random problem."
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Show what a guarantee costs: noise, messages and bytes, and what papers' constants give."""
    from discreet.errors import InvalidInputError
    from discreet.privacy.costs import calibrate

    def cost(trust: str, schedule: str) -> "CalibrationReport":
        return calibrate(
            guarantee.model(trust, calibration),
            release.shape,
            users=release.users,
            schedule=cast("Schedule", schedule),
            statistics=release.counters,
            stationary=release.stationary,
        )

    if learner and not guarantee.trust:
        raise InvalidInputError("--learner prints a run under one trust model: give --trust too.")
    if learner and guarantee.trust in ("central", "none"):
        raise InvalidInputError(
            f"--learner prints what users send encoded, got --trust {guarantee.trust}, where they "
            f"hand over raw episodes; take shuffle or local, or leave it out."
        )
    if not guarantee.trust:
        if guarantee.mechanism != "auto":
            raise InvalidInputError("A mechanism belongs to one trust model: give --trust as well.")
        pairs = [("central", "batch"), ("shuffle", "batch"), ("local", "batch")]
        pairs += [("central", "continual"), ("local", "continual")]
        reports = [cost(trust, one) for trust, one in pairs if schedule in ("", one)]
        if not reports:
            raise InvalidInputError(
                f"Expected schedule batch or continual, got schedule={schedule!r}."
            )
        warn_of_guarantee(guarantee.wanted, guarantee.delta)
        plain = {"results": [r.to_dict() for r in reports]}
        answer(plain, [_comparison(reports, release.users)], json=json)
        return
    report = cost(guarantee.trust, schedule or "batch")
    warn_of_guarantee(report.guarantee.epsilon, report.guarantee.delta)
    if learner:
        report = replace(report, run=_run(learner, guarantee, release))
    answer(report.to_dict(), _shown(report), json=json)


command = grouped(costs)


def _run(
    learner: str, guarantee: GuaranteeOptions, release: ReleaseOptions
) -> dict[str, float] | None:
    import numpy as np

    from discreet.learners.learn import learn, make_batch_learner, public_facts
    from discreet.learners.registry import get_learner
    from discreet.mdp.environments.registry import make
    from discreet.privacy.costs import run_traffic

    sizes = {"states": release.states, "actions": release.actions, "horizon": release.horizon}
    problem, trust = make("RandomMDP", **sizes), guarantee.model(guarantee.trust)
    facts = public_facts(problem, release.users)
    rng = np.random.default_rng(0)
    mechanism = make_batch_learner(get_learner(learner), facts, trust, rng, {}).mechanism
    result = learn(problem, learner=learner, trust=trust, episodes=release.users, seed=0)
    return run_traffic(mechanism, result.extras["batches"])


def _comparison(reports: "list[CalibrationReport]", users: int) -> Table:
    rows = []
    for report in reports:
        name = "visits" if "visits" in report.noise_std else next(iter(report.noise_std))
        noise, guarantee = report.noise_std[name], report.guarantee
        printed = (report.paper_noise_std or {}).get(name)
        row = (
            report.trust,
            report.schedule,
            report.mechanism,
            f"{_pair(guarantee.epsilon, guarantee.delta)}-{guarantee.notion}",
            rounded_noise(noise),
            _share(noise, report.expected_count[name]),
            "-" if printed is None else rounded_noise(printed),
        )
        rows.append(row)
    return Table(
        f"Noise on one counter after {users:,} users",
        (
            "trust",
            "schedule",
            "mechanism",
            "guarantee",
            "noise std",
            "of a visit count",
            "papers' noise",
        ),
        rows,
        right=(4, 5, 6),
        caption=f"Unit: {guarantee.unit}. Neighbours: {guarantee.neighbours}.",
    )


def _shown(report: "CalibrationReport") -> Iterator[Table | str]:
    shape, printed = report.shape, report.paper_noise_std or {}
    yield Table(
        f"{report.trust} {report.schedule}, mechanism {report.mechanism} ({report.calibration}): "
        f"S={shape.states}, A={shape.actions}, H={shape.horizon}, {report.users:,} users",
        ("statistic", "noise std", "mean count", "noise / count", "papers' noise"),
        [
            (
                f"{name} (derived)" if name in report.derived else name,
                rounded_noise(noise),
                rounded_noise(report.expected_count[name]),
                _share(noise, report.expected_count[name]),
                rounded_noise(printed[name]) if name in printed else "-",
            )
            for name, noise in report.noise_std.items()
        ],
        right=(1, 2, 3, 4),
        caption="Mean counts per step if users spread evenly over states and actions.",
    )
    yield f"Guarantee: {report.guarantee}."
    yield from (f"  assuming that {text}" for text in report.guarantee.assumptions)
    if report.concentrated is not None and report.guarantee.rho is None:
        yield f"Also {rounded_up(report.concentrated)}-zCDP: the noise is Gaussian."
    yield from (f"It implies {one.guarantee}: {one.reason}." for one in report.implies)
    yield from _details(report)


def _details(report: "CalibrationReport") -> list[str]:
    lines = []
    if report.noise_std_per_user:
        noise = next(iter(report.noise_std_per_user.values()))
        lines.append(f"One user's report: noise std {rounded_noise(noise)} per counter.")
    if report.noise_bits:
        lines.append(_bits(report.noise_bits))
    if report.noise_cells:
        lines += _cells(report.noise_cells)
    if report.messages_per_user is not None:
        several = f"{report.messages_per_user:,} messages"
        count = "one message" if report.messages_per_user == 1 else several
        support = ", while a deterministic policy is played" if report.trust == "shuffle" else ""
        lines.append(f"Each user sends {count}, {report.bytes_per_user:,} bytes{support}.")
    if report.run:
        run = report.run
        lines.append(
            f"A whole run of {run['users']:,} users in {run['batches']:,} batches: "
            f"{run['messages_per_user']:,.4g} messages, {run['bytes_per_user']:,.0f} bytes per "
            f"user on average; {run['most_messages_per_user']:,} messages, "
            f"{run['most_bytes_per_user']:,.0f} bytes in the dearest batch, of "
            f"{run['users_of_the_dearest_batch']:,} users."
        )
    lines += [f"{who.capitalize()}: {what}." for who, what in (report.parties or {}).items()]
    if report.delivered_by_paper:
        epsilon, delta = report.delivered_by_paper["epsilon"], report.delivered_by_paper["delta"]
        lines.append(
            f"The papers' constants claim {report.claimed_by_paper or 'the same'} and deliver "
            f"{_pair(epsilon, delta)}{', with one message per bit' * (report.trust == 'shuffle')}."
        )
    return lines


def _bits(bits: dict[str, float]) -> str:
    return (
        f"Noise bits per user and counter: {bits['per_user_and_counter']:.0f}, one with "
        f"probability {rounded_down(bits['probability'])} "
        f"(as good as {math.floor(bits['fair_bits_in_all']):,} fair bits in all)."
    )


def _cells(cells: dict[str, Any]) -> list[str]:
    lines = [
        f"Noise of mean {rounded_down(Fraction(cells['lambda']), 6)} on every cell of "
        f"{cells['groups']} groups, spread over all users."
    ]
    for name, one in cells["of"].items():
        lines.append(
            f"A group of {name} has {one['cells']:,} cells; noise cells from each user: "
            f"{one['per_user']:,}, dummies with probability {rounded_up(1 - one['probability'])}."
        )
    return lines


def _pair(epsilon: float | None, delta: float | None) -> str:
    first = rounded_up(math.inf if epsilon is None else epsilon)
    return f"({first}, {rounded_up(delta or 0, 3)})"


def _share(noise: float, count: float) -> str:
    percent = 100 * noise / count
    return f"{percent:,.0f}%" if percent >= 100 else f"{percent:.3g}%"
