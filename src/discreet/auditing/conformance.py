"""`check_mechanism`: is this mechanism fit to protect anybody? Also for mechanisms of your own."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from discreet._types import BoolArray, Checked, IntArray
from discreet.adversarial.mechanism import LayeredMechanism
from discreet.auditing.additive import Additive, probe
from discreet.auditing.cases import find
from discreet.auditing.draws import misfits
from discreet.auditing.examine import TOLERANCE, examine
from discreet.auditing.layered import layered_path
from discreet.auditing.neighbours import Episode, opposites, total, vector
from discreet.auditing.paths import (
    ADD,
    BLOCK,
    LONG,
    Mechanism,
    Path,
    batch_paths,
    long_path,
    main_path,
    stream_path,
    stream_paths,
    vector_paths,
)
from discreet.auditing.probes import PresetSampler
from discreet.errors import UnsupportedError
from discreet.mdp.counts import Counts
from discreet.privacy.guarantee import NEIGHBOURS, rounded_up
from discreet.privacy.mechanisms.base import (
    BatchMechanism,
    ContinualMechanism,
)
from discreet.privacy.sampling.samplers import Sampler, SimulationSampler
from discreet.privacy.sensitivity import STATISTICS
from discreet.privacy.statistics import PrivateCounts
from discreet.privacy.vectors import VectorMechanism

_USERS, _CROWD = 3, 1000
_LARGEST_BATCH = 2_000_000


AuditableMechanism = Mechanism | VectorMechanism | LayeredMechanism


@dataclass(frozen=True)
class Conformance(Checked):
    """What `check_mechanism` found; no problems means fit for use."""

    mechanism: str
    problems: tuple[str, ...]


def check_mechanism(
    mechanism: AuditableMechanism | str, *, progress: Callable[[str], object] = lambda _: None
) -> Conformance:
    """Check a calibrated mechanism, or one by name, for the ways privacy is lost in practice.

    It goes through every public path of it, with both kinds of sampler, on neighbours that
    differ in everything, in rewards only, in one step only, in the last step only and off the
    policy. It rejects noise that is shared between counters or drawn again instead of kept, noise
    of another scale than stated, outputs that are no function of integers, sizes, refusals and
    draws that depend on data, counts that were changed in place, noise or data outside `support`,
    messages that are not single bits or cells, and a guarantee without its assumptions.

    Args:
        mechanism: calibrated (small shapes are faster; 200 continual releases are followed at
            most), or a name such as ``"central/gaussian"``.
        progress: called with what is being checked.

    >>> from discreet.mdp.shape import Shape
    >>> from discreet.privacy import Central
    >>> check_mechanism(Central(epsilon=1).calibrate(Shape(2, 2, 2))).ok
    True
    """
    several = _named(mechanism) if isinstance(mechanism, str) else [mechanism]
    name = mechanism if isinstance(mechanism, str) else mechanism.name
    problems = [text for each in several for text in _problems(each, progress)]
    return Conformance(name, tuple(dict.fromkeys(problems)))


def _named(name: str) -> list[AuditableMechanism]:
    """A mechanism by name: continual ones also pooled over steps, and long."""
    entry = find(name)[0]
    if entry.schedule == "batch":
        return [entry.small()]
    return [entry.small(), replace(entry, stationary=True).small(), entry.long()]


def _problems(mechanism: AuditableMechanism, progress: Callable[[str], object]) -> Iterator[str]:
    if isinstance(mechanism, BatchMechanism | ContinualMechanism):
        for check in _CHECKS:
            progress(check.__name__.strip("_").replace("_", " "))
            yield from check(mechanism)
    if mechanism.guarantee.notion != "none":
        yield from _paths(mechanism, progress)


def _guarantee(mechanism: Mechanism) -> Iterator[str]:
    guarantee = mechanism.guarantee
    if guarantee.notion == "none":
        return
    if not guarantee.assumptions:
        yield "The guarantee names no assumptions: say who is trusted and who must not collude."
    if guarantee.neighbours != NEIGHBOURS:
        yield f"The guarantee is not about {guarantee.unit} under {NEIGHBOURS}."
    if not 0 < guarantee.epsilon < np.inf and not guarantee.claimed:
        yield f"The guarantee says epsilon={guarantee.epsilon!r}, which guarantees nothing."
    sampler = SimulationSampler(np.random.default_rng(0))
    if not _release(mechanism, _crowd(mechanism), sampler).guarantee.simulated:
        yield "A release with simulated noise is not stamped as a simulation."


def _untouched(mechanism: Mechanism) -> Iterator[str]:
    counts = _crowd(mechanism)
    before = counts.transitions.copy(), counts.rewards.copy()
    _release(mechanism, counts, SimulationSampler(np.random.default_rng(1)))
    if not all(map(np.array_equal, before, (counts.transitions, counts.rewards))):
        yield "The release changes the caller's counts in place."


def _support_only(mechanism: Mechanism) -> Iterator[str]:
    """Counters of actions that cannot be played are exactly zero: no noise, and no data either."""
    if not isinstance(mechanism, BatchMechanism) or mechanism.shape.actions == 1:
        return
    support = np.zeros(mechanism.shape.visits, np.bool_)
    support[:, 0, 0] = True
    usual, _ = opposites(mechanism.shape)
    released = _publish(mechanism, usual, SimulationSampler(np.random.default_rng(2)), support)
    parts = (getattr(released, name) for name in STATISTICS)
    if any(np.asarray(part)[~support].any() for part in parts if part is not None):
        yield "Counters outside `support` are not exactly zero: they carry noise."


def _noise_as_stated(mechanism: Mechanism) -> Iterator[str]:
    """Mean, variance and independence of the noise of a release, against what it says of itself."""
    if mechanism.guarantee.notion == "none":
        return
    if isinstance(mechanism, ContinualMechanism):
        last = users = min(mechanism.episodes, 8)
        path = stream_path(mechanism, ADD, last)
    else:
        last, users = 1, _users(mechanism)
        path = main_path(mechanism, users)
    try:
        seen = probe(path)
    except UnsupportedError:  # randomised, or not noise that is added
        return
    counts = total([opposites(mechanism.shape)[0]] * users, mechanism.shape)
    truth, noisy, stated = [], [], []
    said = mechanism.noise_variance(users)
    for name in (name for name in STATISTICS if name in said):
        values = np.asarray(getattr(counts, name), np.float64)
        shown = np.ones(values.shape, np.bool_)
        if name == "transitions" and not mechanism.last_transitions:
            values[-1] = 0.0
        if isinstance(mechanism, BatchMechanism):
            if name == "rewards" and mechanism.centred:
                values = values - counts.visits / 2
            shown[-1] = name != "transitions" or mechanism.last_transitions
        elif mechanism.stationary:
            values, shown = values.sum(axis=0), shown[0]
        truth.append(values.ravel())
        noisy.append(shown.ravel())
        stated.append(np.full(values.size, said[name]))
    kept, variances = np.concatenate(noisy), np.concatenate(stated)
    here = np.flatnonzero(kept) + (last - 1) * kept.size
    response = seen.response[here]
    covariance = response @ np.diag([noise.variance for noise in seen.noises]) @ response.T
    spread = np.sqrt(covariance.diagonal())
    if (variances <= 0).any() or (spread <= 0).any():
        yield "Some released counters carry no noise at all."
        return
    centre = path.base(PresetSampler.still())[here] + seen.moments()[0][here]
    if (np.abs(centre - np.concatenate(truth)[kept]) > 0.1 * spread).any():
        yield "The noise has not mean zero: releases are biased."
    ratio = float((covariance.diagonal() / variances[kept]).mean())
    if abs(ratio - 1) > 0.01:
        yield f"The noise has {ratio:.2f} times the stated variance: wrong scale."
    correlation = np.abs(covariance / np.outer(spread, spread) - np.eye(spread.size))
    if correlation.max() > 0.01:
        yield "Counters share noise: differences between them are released (almost) exactly."


def _messages(mechanism: Mechanism) -> Iterator[str]:
    """Shuffled messages are bits or cells, equally many from everybody, whose order is nothing."""
    if not isinstance(mechanism, BatchMechanism) or mechanism.guarantee.notion != "SDP":
        return
    sampler = SimulationSampler(np.random.default_rng(3))
    encoder = mechanism.encoder(_CROWD)
    sent = [
        encoder.encode(u.states, u.actions, u.rewards, sampler) for u in opposites(mechanism.shape)
    ]
    if any(rows.ndim != 2 or rows.shape[1] != 2 for rows in sent):
        yield "Messages are not (counter, bit): a user's counters stay linked through the shuffler."
        return
    received = [np.bincount(rows[:, 0]) for rows in sent]
    if not np.array_equal(received[0], received[1]):
        yield "The number of messages per counter depends on the data."
    elif not _single(mechanism, sent, int(received[0].max())):
        yield "Messages hold sums, not single bits: the analyser sees each of them, not their sum."
    elif len(sent[0]) * _CROWD <= _LARGEST_BATCH:
        messages = np.concatenate([sent[0]] * (_CROWD - 1) + [sent[1]])
        one, other = (
            vector(mechanism.release_reports(m, _CROWD, secure=False))
            for m in (messages, np.random.default_rng(4).permutation(messages))
        )
        if not np.array_equal(one, other):
            yield "The release depends on the order of the messages."


def _single(mechanism: BatchMechanism, sent: list[IntArray], received: int) -> bool:
    """Every message is one bit of data or noise, or names a cell (see `categories`)."""
    try:
        noise = probe(main_path(mechanism, _CROWD)).noises[0]
    except UnsupportedError:
        return True
    # Noise bits per user and counter, from the distribution of all users' noise.
    bits = all(np.isin(rows[:, 1], (0, 1)).all() for rows in sent)
    return bits and received == noise.trials // _CROWD + 1


_CHECKS: tuple[Callable[[Mechanism], Iterator[str]], ...] = (
    _guarantee,
    _untouched,
    _support_only,
    _noise_as_stated,
    _messages,
)


def _paths(mechanism: AuditableMechanism, progress: Callable[[str], object]) -> list[str]:
    """Every path: what it delivers, and what of it depends on data.

    Raises:
        UnsupportedError: nothing was found, but the outcomes of some path are too many to list.
    """
    said: list[str] = []
    unlisted: list[str] = []
    fitted: set[tuple[str, bool]] = set()
    guarantee = mechanism.guarantee
    for path, hint in _all_paths(mechanism):
        progress(f"{path.label} ({path.kind})")
        for secure in path.secure:
            finding = examine(path, secure=secure, hint=hint)
            texts = [*finding.problems]
            exact = finding.view.epsilon(guarantee.delta) if finding.view else 0.0
            if exact > guarantee.epsilon * (1 + TOLERANCE):
                texts.append(
                    f"The release delivers epsilon={rounded_up(exact, 7)} at "
                    f"delta={rounded_up(guarantee.delta)}, "
                    f"the guarantee says {rounded_up(guarantee.epsilon, 7)}."
                )
            if (path.name, secure) not in fitted:
                fitted.add((path.name, secure))
                texts += misfits(finding)
            said += [f"{path.label}: {text}" for text in texts]
            unlisted += [finding.unlisted] if finding.unlisted else []
    if unlisted and not said:
        raise UnsupportedError(unlisted[0])
    return said


def _all_paths(mechanism: AuditableMechanism) -> Iterator[tuple[Path, Additive | None]]:
    """Short ones, and long ones with what their blocks say about their draws."""
    if isinstance(mechanism, LayeredMechanism):
        yield layered_path(mechanism, centred=mechanism.centred_losses), None
    elif isinstance(mechanism, VectorMechanism):
        yield from ((path, None) for path in vector_paths(mechanism))
    elif isinstance(mechanism, BatchMechanism):
        yield from ((path, None) for path in batch_paths(mechanism, _USERS))
    else:
        yield from ((path, None) for path in stream_paths(mechanism))
        if mechanism.episodes < LONG or mechanism.cells > 8:
            return
        hint = None
        if mechanism.response == "unit":
            simulated = long_path(mechanism, BLOCK, secure=False)
            yield simulated, None
            with contextlib.suppress(UnsupportedError):
                hint = probe(simulated)
        yield long_path(mechanism, ADD, secure=True), hint


def _users(mechanism: Mechanism) -> int:
    """Local reports are private one by one; others are checked in a small batch."""
    return (
        _USERS
        if isinstance(mechanism, BatchMechanism) and mechanism.guarantee.notion != "LDP"
        else 1
    )


def _crowd(mechanism: Mechanism) -> Counts:
    usual, other = opposites(mechanism.shape)
    return total([other] + [usual] * (_users(mechanism) - 1), mechanism.shape)


def _release(mechanism: Mechanism, counts: Counts, sampler: Sampler) -> PrivateCounts:
    if isinstance(mechanism, ContinualMechanism):
        return mechanism.open(sampler).add(counts)
    if mechanism.takes_counts:
        return mechanism.release(counts, sampler=sampler)
    return _publish(mechanism, opposites(mechanism.shape)[1], sampler, None)


def _publish(
    mechanism: BatchMechanism, user: Episode, sampler: Sampler, support: BoolArray | None
) -> PrivateCounts:
    """One user's release, from counts or from a report, whichever the mechanism takes."""
    if mechanism.takes_counts:
        return mechanism.release(user.counts(mechanism.shape), sampler=sampler, support=support)
    encoder = mechanism.encoder(1, support=support)
    report = encoder.encode(user.states, user.actions, user.rewards, sampler)
    return mechanism.release_reports(report, 1, secure=sampler.secure, support=support)
