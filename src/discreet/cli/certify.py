"""`discreet certify`: a rigorous bound on delta as a small file, and the check of such a file."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import (
    Force,
    GuaranteeOptions,
    Json,
    ReleaseOptions,
    grouped,
)
from discreet.cli.output import Progress, Table, answer, check_target, facts
from discreet.errors import InvalidInputError
from discreet.privacy.guarantee import rounded_up

if TYPE_CHECKING:
    from discreet.privacy.certificates.document import Certifiable, Certificate

_MOST_EPSILON = 5000
_LEAST_DELTA = 1e-30
_MOST_USERS = 10**15
_MOST_EPISODES = 10**7
"""What the methods of certificates reach."""


@dataclass(frozen=True)
class CertifiedGuarantee(GuaranteeOptions):
    """Options on the guarantee: of one trust model that gives one."""

    trust: Annotated[str, typer.Option(help="central, local or shuffle.")] = "shuffle"


@dataclass(frozen=True)
class CertifiedRelease(ReleaseOptions):
    """Options on what is released: a batch, or continually."""

    episodes: Annotated[
        int,
        typer.Option(
            help="Number of episodes of a continual release, instead of a batch of --users."
        ),
    ] = 0


def proof(
    context: typer.Context,
    guarantee: CertifiedGuarantee,
    release: CertifiedRelease,
    output: Annotated[Path | None, typer.Option(help="Write the certificate to this file.")] = None,
    verify: Annotated[
        Path | None,
        typer.Option(
            help="Check a certificate instead of making one. With other options: that it is one of "
            "just this guarantee and release."
        ),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(
            "--for",
            help="With --verify: a design (.toml) or a study's file that the certificate must be "
            "one of.",
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Prove a guarantee by rigorous arithmetic, or check such a proof."""
    if verify is not None:
        if output is not None:
            raise InvalidInputError("--verify writes nothing: leave --output out.")
        _verify(verify, _asked(_typed(context), guarantee, release, design), json=json)
        return
    if design is not None:
        raise InvalidInputError("--for belongs to --verify FILE: give the certificate, too.")
    if output is not None:
        check_target(output, force=force)
    _check_reach(guarantee, release)
    from discreet.privacy.certificates.document import NOT_COVERED, CertificateError, certify

    with Progress(quiet=json, verb="certificate:") as progress:
        try:
            mechanism, users = _mechanism(guarantee, release)
            made = certify(mechanism, users=users, progress=progress)
        except ArithmeticError as error:
            raise CertificateError(
                f"These numbers are beyond what can be calibrated ({error}); ask for an epsilon, "
                "a delta and a number of users closer to one."
            ) from None
    if output is not None and made.holds:
        made.write(output)
    plain = {
        "holds": made.holds,
        "bound": float(made.bound),
        "delta": float(made.claim.delta),
        "ratio": made.ratio,
        "seconds": made.seconds,
        "output": str(output) if output is not None and made.holds else None,
        "not_covered": list(NOT_COVERED),
        "certificate": made.to_dict(),
    }
    failed = [] if made.holds else [f"Error: {made.sentence()}"]
    answer(plain, _shown(made, output), json=json, notes=failed)
    if failed:
        raise typer.Exit(1)


command = grouped(proof)


def _check_reach(guarantee: GuaranteeOptions, release: CertifiedRelease) -> None:
    """What no certificate reaches is refused before anything long begins."""
    epsilon, delta, length = guarantee.wanted, guarantee.delta, release.episodes
    rules = (
        (epsilon > _MOST_EPSILON, f"epsilon={epsilon!r}", f"epsilon <= {_MOST_EPSILON}"),
        (0 < delta < _LEAST_DELTA, f"delta={delta!r}", f"delta = 0 or >= {_LEAST_DELTA:g}"),
        (release.users > _MOST_USERS, f"users={release.users}", "users <= 1e15"),
        (release.episodes < 0, f"episodes={release.episodes}", "episodes >= 0"),
        (length > _MOST_EPISODES, f"{length} of them", "at most 1e7 episodes"),
    )
    for broken, got, rule in rules:
        if broken:
            raise InvalidInputError(f"A certificate needs {rule}, got {got}.")


def _mechanism(
    guarantee: GuaranteeOptions, release: CertifiedRelease
) -> "tuple[Certifiable, int | None]":
    """The mechanism that the options describe, and the users of its batch."""
    from discreet.privacy.costs import usual_batch
    from discreet.privacy.sensitivity import STATISTICS

    trust, episodes = guarantee.model(guarantee.trust), release.episodes
    if episodes:
        continual: Certifiable = trust.calibrate_stream(
            release.shape,
            statistics=release.counters or STATISTICS,
            episodes=episodes,
            stationary=release.stationary,
        )
        return continual, None
    if release.stationary:
        raise InvalidInputError("Pooled counters are continual: give --episodes as well.")
    return usual_batch(trust, release.shape, release.counters), release.users


def _shown(certificate: "Certificate", output: Path | None) -> Iterator[Table | str]:
    from discreet.privacy.certificates import verify as verifier
    from discreet.privacy.certificates.document import NOT_COVERED

    claim = certificate.claim
    name = str(claim.noise["name"])
    numbers = {field: value for field, value in claim.noise.items() if field != "name"}
    ratio = certificate.bound / (claim.delta or 1)
    rows = [
        ("noise", f"{name}: {_short(numbers)}"),
        ("one user moves", verifier.described(verifier.moves_of(claim.release)[name])),
        ("method", _short(certificate.method)),
        ("proven bound", rounded_up(certificate.bound, 9)),
        ("bound / delta", rounded_up(ratio, 9) if claim.delta else "exact, delta is 0"),
        ("time", f"{certificate.seconds:.2f} s"),
    ]
    yield facts(f"Certificate for {claim.release['mechanism']}", rows)
    if certificate.holds:
        yield f"Certified: {certificate.sentence()} {verifier.claim(certificate.to_dict())}"
    if output is not None and certificate.holds:
        yield f"Written to {output}; check it with: discreet certify --verify {output}"
    yield f"Not covered: {'; '.join(NOT_COVERED)}."


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(part)}" for name, part in value.items())
    if isinstance(value, list):
        if len(value) > 4:
            return f"{len(value)} numbers"
        return " and ".join(_short(part) for part in value)
    text = str(value)
    if len(text) <= 24:
        return text
    numerator, _, denominator = text.partition("/")
    if numerator.isdigit() and denominator.isdigit():
        return f"{int(numerator) / int(denominator):.10g} (exact in the file)"
    return f"{text[:16]}..."


def _asked(
    typed: set[str], guarantee: CertifiedGuarantee, release: CertifiedRelease, design: Path | None
) -> "tuple[Certifiable, int | None, float] | None":
    """What a certificate must be one of: a design, or the options if any of them was given.

    With the users of its batch, if they were given, and how many there can be.
    """
    typed &= {item.name for group in (guarantee, release) for item in fields(group)}
    if design is None:
        return (*_mechanism(guarantee, release), math.inf) if typed else None
    if known := sorted(typed - {"users"}):
        raise InvalidInputError(f"--for says all but the users of a batch: leave --{known[0]} out.")
    from discreet.study.design import read_design
    from discreet.study.study import Study

    if design.suffix == ".toml":
        with TemporaryDirectory() as folder:  # a rehearsal has the same noise, and needs no key
            given = replace(read_design(design), sampler="simulation", seed=0)
            study = Study.begin(Path(folder) / "study.db", given)
    else:
        study = Study.read(design)
    mechanism, most = study.mechanism, study.episodes
    if typed and release.users > most:
        raise InvalidInputError(
            f"Expected --users <= {most}, all of the study, got {release.users}."
        )
    return mechanism, release.users if typed else None, most


def _typed(context: typer.Context) -> set[str]:
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def _verify(
    path: Path, asked: "tuple[Certifiable, int | None, float] | None", *, json: bool
) -> None:
    from discreet.privacy.certificates import verify as verifier
    from discreet.privacy.certificates.document import claim_of

    try:
        data = verifier.read(str(path))
        found = verifier.proven(data, verifier.check(data))
        if asked is not None:
            mechanism, users, most = asked
            stated = data["release"].get("users")
            if stated and stated > most:
                raise verifier.Refused(
                    f"It is of a batch of {stated} users, and the study has {most}."
                )
            # A design has batches of many sizes: the stated one.
            verifier.compare(data, claim_of(mechanism, users=users or stated).to_dict())
    except verifier.Refused as refused:
        plain = {"verified": False, "reason": str(refused)}
        answer(plain, [], json=json, notes=[f"Error: {path} is refused: {refused}"])
        raise typer.Exit(1) from None
    plain = {"verified": True, "compared": asked is not None, **found}
    compared = ["It is a certificate of what was asked for."] * (asked is not None)
    answer(plain, [*verifier.report(found), *compared], json=json)
