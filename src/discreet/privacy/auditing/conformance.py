"""`check_mechanism`: is this plan fit to protect anybody? Also for mechanisms of your own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet._types import BoolArray, Checked, FloatArray, IntArray, NumberArray
from discreet.adversarial.mechanism import LayeredMechanism
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.privacy.auditing.examine import TOLERANCE, Finding, examine
from discreet.privacy.auditing.fit import misfits
from discreet.privacy.auditing.linear import Additive
from discreet.privacy.auditing.neighbours import Episode, Plan, batch_of, opposites, vector
from discreet.privacy.auditing.paths.batches import batch_paths
from discreet.privacy.auditing.paths.layers import layered_paths
from discreet.privacy.auditing.paths.main import main_path
from discreet.privacy.auditing.paths.path import Path
from discreet.privacy.auditing.paths.streams import BLOCK, LONG, WAYS, long_path, stream_paths
from discreet.privacy.auditing.paths.vectors import vector_paths
from discreet.privacy.auditing.probes import Law
from discreet.privacy.auditing.probing import probe
from discreet.privacy.auditing.reports import device
from discreet.privacy.guarantee import NEIGHBOURS, UNIT, Guarantee, rounded_up
from discreet.privacy.plans import (
    BatchMechanism,
    ContinualMechanism,
    CountsMechanism,
    ReportMechanism,
    with_counts,
    with_reports,
)
from discreet.privacy.sampling.samplers import Sampler, SimulationSampler
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.vectors import VectorMechanism

AnyMechanism = Plan | VectorMechanism | LayeredMechanism
_RUNS = 300
_USERS, _CROWD = 3, 1000
_LARGEST_BATCH = 2_000_000
_SIGMAS = 7.0
"""False alarms at seven standard errors: below 1e-11 per test."""


@dataclass(frozen=True)
class Conformance(Checked):
    """What `check_mechanism` found; no problems means fit for use."""

    mechanism: str
    problems: tuple[str, ...]


def check_mechanism(
    plan: AnyMechanism | str, *, progress: Callable[[str], object] = lambda _: None
) -> Conformance:
    """Check a calibrated plan (or a mechanism by name) for the ways privacy is lost in practice.

    It goes through every public path of the plan, with both kinds of sampler, on neighbours that
    differ in everything, in rewards only, in one step only, in the last step only and off the
    policy. It rejects noise that is shared between counters or drawn again instead of kept, noise
    of another scale than stated, outputs that are no function of integers, sizes, refusals and
    draws that depend on data, counts that were changed in place, noise or data outside `support`,
    messages that are not single bits or cells, and a guarantee without its assumptions.

    Args:
        plan: a batch, stream, vector or layered plan (small shapes are faster; streams of 200
            releases and more are followed that far), or a name such as ``"central/gaussian"``.
        progress: called with what is being checked.

    >>> from discreet.mdp.shape import Shape
    >>> from discreet.privacy import Central
    >>> check_mechanism(Central(epsilon=1).calibrate(Shape(2, 2, 2))).ok
    True
    """
    plans = _named(plan) if isinstance(plan, str) else [plan]
    name = plan if isinstance(plan, str) else getattr(plan, "mechanism", "layered")
    problems = [text for each in plans for text in _problems(each, progress)]
    return Conformance(name, tuple(dict.fromkeys(problems)))


def _named(name: str) -> list[AnyMechanism]:
    """A mechanism by name: streams also pooled over steps, and long."""
    from discreet.privacy.auditing.roster import find

    entry = find(name)[0]
    if entry.schedule == "batch":
        return [entry.plan()]
    return [entry.plan(), replace(entry, stationary=True).plan(), entry.long()]


def _problems(plan: AnyMechanism, progress: Callable[[str], object]) -> Iterator[str]:
    if isinstance(plan, BatchMechanism | ContinualMechanism):
        for check in _CHECKS:
            progress(check.__name__.strip("_").replace("_", " "))
            yield from check(plan)
    if plan.guarantee.notion != "none":
        yield from _paths(plan, progress)


def _promise(plan: Plan) -> Iterator[str]:
    guarantee = plan.guarantee
    if guarantee.notion == "none":
        return
    if not guarantee.assumptions:
        yield "The guarantee names no assumptions: say who is trusted and who must not collude."
    if guarantee.unit != UNIT or guarantee.neighbours != NEIGHBOURS:
        yield f"The guarantee is not about {UNIT} under {NEIGHBOURS}."
    if not 0 < guarantee.epsilon < np.inf and not guarantee.claimed:
        yield f"The guarantee promises epsilon={guarantee.epsilon!r}, which is no promise."
    sampler = SimulationSampler(np.random.default_rng(0))
    if not _release(plan, _crowd(plan), sampler).guarantee.simulated:
        yield "A release with simulated noise is not stamped as a simulation."


def _untouched(plan: Plan) -> Iterator[str]:
    """The caller's arrays stay as they were."""
    counts = _crowd(plan)
    before = counts.transitions.copy(), counts.rewards.copy()
    _release(plan, counts, SimulationSampler(np.random.default_rng(1)))
    if not all(map(np.array_equal, before, (counts.transitions, counts.rewards))):
        yield "The release changes the caller's counts in place."


def _support_only(plan: Plan) -> Iterator[str]:
    """Counters of actions that cannot be played are exactly zero: no noise, and no data either."""
    if not isinstance(plan, BatchMechanism) or plan.shape.actions == 1:
        return
    support = np.zeros(plan.shape.visits, np.bool_)
    support[:, 0, 0] = True
    usual, _ = opposites(plan.shape)
    released = _publish(plan, usual, SimulationSampler(np.random.default_rng(2)), support)
    if any(np.asarray(part)[~support].any() for part in _parts(released)):
        yield "Counters outside `support` are not exactly zero: they carry noise."


def _noise_as_stated(plan: Plan) -> Iterator[str]:
    """Mean, variance and independence of the noise, against what the plan says of itself."""
    if plan.guarantee.notion == "none" or not _is_additive(plan):
        return
    noise, stated = _noise_samples(plan)
    if (stated <= 0).any() or not np.ptp(noise, axis=0).all():
        yield "Some released counters carry no noise at all."
        return
    standard = noise / np.sqrt(stated)
    runs, cells = standard.shape
    if (np.abs(standard.mean(axis=0)) > _SIGMAS / np.sqrt(runs)).any():
        yield "The noise has not mean zero: releases are biased."
    squares = (standard**2).mean(axis=1)
    ratio, error = squares.mean(), squares.std() / np.sqrt(runs)
    if abs(ratio - 1) > _SIGMAS * error:
        yield f"The noise has {ratio:.2f} times the stated variance: wrong scale."
    correlation = np.abs(np.corrcoef(standard.T) - np.eye(cells)) if cells > 1 else np.zeros(1)
    if correlation.max() > (_SIGMAS + 2) / np.sqrt(runs):
        yield "Counters share noise: differences between them are released (almost) exactly."


def _messages(plan: Plan) -> Iterator[str]:
    """Shuffled messages are bits or cells, equally many from everybody, whose order is nothing."""
    if plan.guarantee.notion != "SDP" or not isinstance(plan, ReportMechanism):
        return
    sampler = SimulationSampler(np.random.default_rng(3))
    encoder = device(plan, _CROWD)
    sent = [encoder.encode(u.states, u.actions, u.rewards, sampler) for u in opposites(plan.shape)]
    if any(rows.ndim != 2 or rows.shape[1] != 2 for rows in sent):
        yield "Messages are not (counter, bit): a user's counters stay linked through the shuffler."
        return
    received = [np.bincount(rows[:, 0]) for rows in sent]
    if not np.array_equal(received[0], received[1]):
        yield "The number of messages per counter depends on the data."
    elif not _single(plan, sent, int(received[0].max())):
        yield "Messages hold sums, not single bits: the analyser sees each of them, not their sum."
    elif len(sent[0]) * _CROWD <= _LARGEST_BATCH:
        yield from _order(plan, np.concatenate([sent[0]] * (_CROWD - 1) + [sent[1]]))


def _single(plan: ReportMechanism, sent: list[IntArray], received: int) -> bool:
    """Every message is one bit of data or noise, or names a cell (see `categories`)."""
    try:
        noise_bits = _noise_bits(probe(main_path(plan, _CROWD)).laws[0])
    except UnsupportedError:
        return True
    bits = all(np.isin(rows[:, 1], (0, 1)).all() for rows in sent)
    return bits and received == noise_bits + 1


def _noise_bits(law: Law) -> int:
    """Noise bits per user and counter, from the law of all users' noise."""
    if law.kind == "table":
        return len(np.frombuffer(law.table)) - 1
    return law.trials // _CROWD


def _order(plan: ReportMechanism, messages: IntArray) -> Iterator[str]:
    mixed = np.random.default_rng(4).permutation(messages)
    one, other = (vector(plan.release_reports(m, _CROWD, secure=False)) for m in (messages, mixed))
    if not np.array_equal(one, other):
        yield "The release depends on the order of the messages."


_CHECKS: tuple[Callable[[Plan], Iterator[str]], ...] = (
    _promise,
    _untouched,
    _support_only,
    _noise_as_stated,
    _messages,
)


def _paths(plan: AnyMechanism, progress: Callable[[str], object]) -> list[str]:
    """Every path: what it delivers, and what of it depends on data.

    Raises:
        UnsupportedError: nothing was found, but the outcomes of some path are too many to list.
    """
    said: list[str] = []
    unlisted: list[str] = []
    fitted: set[tuple[str, bool]] = set()
    for path, hint in _all_paths(plan):
        progress(f"{path.label} ({path.kind})")
        for secure in path.secure:
            finding = examine(path, secure=secure, hint=hint)
            texts = [*_found(finding, plan.guarantee)]
            if (path.name, secure) not in fitted:
                fitted.add((path.name, secure))
                texts += misfits(finding)
            said += [f"{path.label}: {text}" for text in texts]
            unlisted += [finding.unlisted] if finding.unlisted else []
    if unlisted and not said:
        raise UnsupportedError(unlisted[0])
    return said


def _found(finding: Finding, guarantee: Guarantee) -> Iterator[str]:
    yield from finding.problems
    if finding.view is None:
        return
    exact = finding.view.epsilon(guarantee.delta)
    if exact > guarantee.epsilon * (1 + TOLERANCE):
        yield (
            f"The release delivers epsilon={rounded_up(exact, 7)} at "
            f"delta={rounded_up(guarantee.delta)}, "
            f"the guarantee says {rounded_up(guarantee.epsilon, 7)}."
        )


def _all_paths(plan: AnyMechanism) -> Iterator[tuple[Path, Additive | None]]:
    """Short ones, and long ones with what their blocks say about their draws."""
    if isinstance(plan, VectorMechanism):
        yield from ((path, None) for path in vector_paths(plan))
    elif isinstance(plan, LayeredMechanism):
        yield from ((path, None) for path in layered_paths(plan))
    elif isinstance(plan, BatchMechanism):
        yield from ((path, None) for path in batch_paths(plan, _USERS))
    else:
        yield from ((path, None) for path in stream_paths(plan))
        yield from _long_paths(plan)


def _long_paths(plan: ContinualMechanism) -> Iterator[tuple[Path, Additive | None]]:
    if plan.episodes < LONG or plan.cells > 8:
        return
    hint = None
    if plan.response == "unit":
        simulated = long_path(plan, BLOCK, secure=False)
        yield simulated, None
        hint = _probed(simulated)
    yield long_path(plan, next(iter(WAYS)), secure=True), hint


def _probed(path: Path) -> Additive | None:
    try:
        return probe(path)
    except UnsupportedError:
        return None


def _parts(released: PrivateCounts) -> list[NumberArray]:
    parts = [getattr(released, name) for name in STATISTICS]
    return [part for part in parts if part is not None]


def _users(plan: Plan) -> int:
    """Local reports are private one by one; others are checked in a small batch."""
    return _USERS if isinstance(plan, BatchMechanism) and plan.guarantee.notion != "LDP" else 1


def _crowd(plan: Plan) -> Counts:
    return batch_of(opposites(plan.shape)[1], _users(plan), plan.shape)


def _release(plan: Plan, counts: Counts, sampler: Sampler) -> PrivateCounts:
    if isinstance(plan, ContinualMechanism):
        return plan.open(sampler).add(counts)
    if isinstance(plan, CountsMechanism):
        return plan.release(counts, sampler=sampler)
    return _publish(plan, opposites(plan.shape)[1], sampler, None)


def _publish(
    plan: BatchMechanism, user: Episode, sampler: Sampler, support: BoolArray | None
) -> PrivateCounts:
    """One user's release, from counts or from a report, whichever the mechanism takes."""
    if isinstance(plan, CountsMechanism):
        return plan.release(user.counts(plan.shape), sampler=sampler, support=support)
    devices = with_reports(plan)
    encoder = devices.encoder(1, support=support)
    report = encoder.encode(user.states, user.actions, user.rewards, sampler)
    return devices.release_reports(report, 1, secure=sampler.secure, support=support)


def _is_additive(plan: Plan) -> bool:
    try:
        probe(main_path(plan, _users(plan)) if isinstance(plan, BatchMechanism) else _first(plan))
    except UnsupportedError:
        return False
    return True


def _first(plan: ContinualMechanism) -> Path:
    return next(iter(stream_paths(plan, 2)))


def _noise_samples(plan: Plan) -> tuple[FloatArray, FloatArray]:
    """Noise of repeated last releases ``[runs, cells]`` and its stated variances."""
    rng = np.random.default_rng(6)
    counts = _crowd(plan)
    last = min(plan.episodes, 8) if isinstance(plan, ContinualMechanism) else 1

    def once() -> PrivateCounts:
        if isinstance(plan, BatchMechanism):
            return with_counts(plan).release(_crowd(plan), sampler=SimulationSampler(rng))
        stream = plan.open(SimulationSampler(rng))
        return [stream.add(counts) for _ in range(last)][-1]

    drawn = [once() for _ in range(_RUNS)]
    names = [name for name in STATISTICS if name in plan.statistics]
    truth = [last * _truth(plan, counts, name).ravel() for name in names]
    stated = plan.noise_variance(last if isinstance(plan, ContinualMechanism) else counts.users)
    variances = np.repeat([stated[name] for name in names], [part.size for part in truth])
    noisy = [
        np.concatenate([_noisy(plan, np.asarray(getattr(one, name))).ravel() for name in names])
        for one in drawn
    ]
    return np.array(noisy) - np.concatenate(truth), variances


def _truth(plan: Plan, counts: Counts, name: str) -> NumberArray:
    """What a statistic is an estimate of."""
    raw = np.asarray(getattr(counts, name), np.float64)
    if isinstance(plan, ContinualMechanism):
        return raw.sum(axis=0) if plan.stationary else raw
    if name == "rewards" and plan.centred:
        raw = raw - counts.visits / 2
    return _noisy(plan, raw)


def _noisy(plan: Plan, values: NumberArray) -> NumberArray:
    """Without the transitions of the last step, where they are not released."""
    shown = isinstance(plan, ContinualMechanism) or plan.last_transitions or values.ndim < 4
    return values if shown else values[:-1]
