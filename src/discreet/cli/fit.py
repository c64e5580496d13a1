"""`discreet fit`: a better policy from a table of logged episodes, by one private release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet._files import TABLES
from discreet.cli.options import Force, Json, grouped
from discreet.cli.output import Progress, answer, check_target, warn, warn_of_guarantee
from discreet.cli.study import DesignOptions, Rehearsal
from discreet.errors import DiscreetError, InvalidInputError

if TYPE_CHECKING:
    from discreet._types import BoolArray
    from discreet.data.vocabulary import Vocabulary
    from discreet.mdp.policies import DeferringPolicy
    from discreet.offline.evaluate import Evaluation
    from discreet.offline.fit import Fit
    from discreet.privacy.ledger import Ledger
    from discreet.study.design import Design


def fitted(
    table: Annotated[
        Path, typer.Argument(help="Logged episodes, CSV or Parquet.", show_default=False)
    ],
    design: DesignOptions,
    rehearsal: Rehearsal,
    width: Annotated[
        float,
        typer.Option(
            help="Standard errors that an action must be better by. Below 2 was not safe."
        ),
    ] = 2.0,
    output: Annotated[
        Path | None, typer.Option(help="Write the policy here, .json or .csv.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="Evaluate this policy, .json, instead of finding one."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Ledger of what was released so far. Left out: people.ledger, beside the table."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON[,DELTA]",
            help="The most that all releases may spend per person. It is never raised.",
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Learn a policy that is better than what people do today, or defers to it, by one release.

    With --policy: estimate what a given policy would earn, and what is earned today.
    """
    from discreet.offline.fit import Fit

    written = design.read()
    trust = written.trust_model
    warn_of_guarantee(getattr(trust, "epsilon", None), getattr(trust, "delta", None))
    charges = _ledger(ledger, budget, table)
    if output is not None:  # known before the release, which is made once
        inputs = [table, charges.path, design.design, policy]
        check_target(output, *TABLES, force=force, inputs=inputs)
    given = None if policy is None else _read_policy(policy, output, written.vocabulary)
    with Progress(quiet=json, verb="reading") as progress:
        progress(str(table))
        options = {**rehearsal.arguments(), "ledger": charges}
        found = _released(written, table, options, width, given, progress)
    if isinstance(found, Fit) and output is not None:
        _save(found, output)
    plain, shown = found.to_dict(), str(found).splitlines()
    if isinstance(found, Fit):
        plain = {**plain, "policy": found.rows(), "output": str(output) if output else None}
    if rehearsal.rehearse:
        plain["ledger"] = {"path": str(charges.path), "charged": False}
        shown.append(f"Ledger: {charges.path} is not charged, this is a rehearsal.")
    if output is not None:
        shown.append(f"Policy: {output}")
    answer(plain, shown, json=json)


command = grouped(fitted)


def _ledger(path: Path | None, budget: str | None, table: Path) -> "Ledger":
    """The ledger that was named, or the one beside the table; it speaks before it is charged."""
    from discreet.privacy.ledger import NAME, Budget, Ledger

    beside = table.resolve() if table.is_symlink() else table  # one table, one ledger
    epsilon, _, delta = (budget or "").partition(",")
    try:
        return Ledger(
            beside.parent / NAME if path is None else path,
            budget=None if budget is None else Budget(float(epsilon), float(delta or 0)),
            table=table,
            told=lambda account: warn(f"Ledger: {account}."),
        )
    except ValueError:
        raise InvalidInputError(
            f"Expected --budget as EPSILON or EPSILON,DELTA such as 2,1e-5, with epsilon > 0 and "
            f"0 <= delta < 1, got {budget!r}."
        ) from None


def _read_policy(path: Path, output: Path | None, names: "Vocabulary") -> "DeferringPolicy":
    """A file as `fit` and studies write them; where it defers, today's behaviour is evaluated."""
    import numpy as np

    from discreet.device.policy import load_policy
    from discreet.mdp.policies import DEFER, DeferringPolicy

    if output is not None:
        raise InvalidInputError(
            f"Expected --output or --policy, got both: {str(path)!r} is evaluated, and no policy "
            f"is found that {str(output)!r} could hold; leave out --output."
        )
    numbers = {"DEFER": DEFER, **{name: i for i, name in enumerate(names.actions)}}
    try:
        read = load_policy(path)
        rows = [
            [numbers[read.action(state, step, fallback="DEFER")] for state in names.states]
            for step in names.steps
        ]
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInputError(
            f"Expected --policy as JSON that `discreet fit --output` writes, with the actions "
            f"{', '.join(names.actions)} or DEFER, got {str(path)!r}: {error}"
        ) from None
    return DeferringPolicy(np.array(rows))


def _save(found: "Fit", output: Path) -> None:
    try:
        found.save_policy(output)
    except DiscreetError as error:
        if found.account is None:  # of a rehearsal
            raise
        raise InvalidInputError(
            f"{error} Nothing is lost: what was released is in the ledger, and the same command "
            f"gives it again at no cost."
        ) from None


def _start(design: "Design", names: "Vocabulary") -> "BoolArray":
    import numpy as np

    mask = np.zeros(len(names.states), np.bool_)
    mask[design.starts] = True
    return mask


def _released(
    design: "Design",
    table: Path,
    options: dict[str, Any],
    width: float,
    policy: "DeferringPolicy | None",
    progress: Progress,
) -> "Fit | Evaluation":
    """Everything public is checked before the table is read."""
    from discreet.data.layout import Layout
    from discreet.data.tables import read_by
    from discreet.offline.evaluate import evaluate_policy
    from discreet.offline.fit import fit
    from discreet.offline.release import Randomness, check_trust

    trust, names = design.trust_model, design.vocabulary
    check_trust(trust)
    Randomness.of(options["sampler"], options["seed"])
    form = design.format
    layout = Layout(names, form)
    options["start"] = None if design.start_states is None else _start(design, names)
    options["vocabulary"] = names
    episodes, options["users"] = read_by(table, layout)
    progress(f"{len(set(options['users'])):,} people of {table}")
    if policy is not None:
        return evaluate_policy(episodes, policy, trust, **options).in_units(*form.reward_range)
    found = fit(episodes, trust, stationary=design.stationary, width=width, **options)
    return found.in_units(*form.reward_range)
