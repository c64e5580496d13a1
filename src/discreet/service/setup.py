"""Set up a service: the study, its charter with certificate, and a folder with a file per role.

``charter.json`` is public; each of ``shuffler/``, ``analyser/``, ``enroller/`` and ``device/``
belongs to one organisation, and whoever holds two of them holds what their separation protects.
"""

import dataclasses
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from discreet import _validate
from discreet._files import write_atomically
from discreet.device.wire import LARGEST_BODY
from discreet.errors import InvalidInputError, UnsupportedError
from discreet.privacy.certificates.document import Certificate, certify
from discreet.privacy.mechanisms.base import BatchMechanism
from discreet.privacy.mechanisms.registry import mechanisms
from discreet.privacy.trust import Shuffle
from discreet.service import configs
from discreet.service.analyser import check_study
from discreet.service.opening import make_signing_key, old_of, read_signing_key
from discreet.service.protocol import manifest as manifests
from discreet.service.protocol import ticket
from discreet.service.protocol.charter import Charter, layout_of
from discreet.service.protocol.manifest import Manifest
from discreet.study.design import Design
from discreet.study.study import Study

_DAY = 86_400
SEAL = 1e-3
"""Seconds in which a phone seals an envelope: eight times what the page on scale measures."""
DEVICE_SECONDS = 60
"""For which a participant's phone may be busy with one report."""
HONEST = Fraction(19, 20)
"""Share of its users on whose noise a service counts at most: one of them cannot stop the others
with a report that nobody can read, and the guarantee holds without the noise of the rest."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a charter says beyond its study.

    Attributes:
        purpose: in words for participants.
        patience: seconds for which a batch may stay open.
        rehearsal: users are simulated, nobody is protected.
    """

    purpose: str = "a study with discreet"
    patience: int = 7 * _DAY
    rehearsal: bool = False


@dataclass(frozen=True)
class Service:
    """A new service.

    Attributes:
        folder: of everything.
        charter: what is guaranteed.
    """

    folder: Path
    charter: Charter

    def config(self, role: str) -> Path:
        return self.folder / role / f"{role}.toml"


def setup_service(
    folder: Path,
    terms: Terms,
    design: Design,
    *,
    url: str = "http://127.0.0.1:8700",
    store: str = "shuffler.db",
) -> Service:
    """Begin a study and write the files of all roles; what is refused leaves no folder behind.

    Args:
        folder: must not exist yet.
        terms: of the charter.
        design: of the study, under shuffle trust (least batch 0: a hundredth of all users); its
            seed is that of a rehearsal.
        url: where the shuffler will be; ends with ``/studies/NAME``, which becomes the study's
            name, if it is not the shuffler's first study.
        store: of the shuffler: a file, or an address of PostgreSQL.
    """
    if folder.exists():
        raise InvalidInputError(f"{str(folder)!r} exists already; choose a new folder.")
    configs.check_url(url)
    trust, settings = design.trust_model, dict(design.settings)
    if not isinstance(trust, Shuffle):
        raise InvalidInputError(f"Expected shuffle trust in a service, got {trust}.")
    if design.seed is not None and not terms.rehearsal:
        raise InvalidInputError("A service that protects people cannot be seeded; rehearse it.")
    if _validate.exact(trust.honest) > HONEST:
        raise InvalidInputError(
            f"Expected honest <= {float(HONEST)} in a service, got {trust.honest}: a batch is "
            f"counted although some reports in it cannot be read, so its noise has to be enough "
            f"without theirs. Say {float(HONEST)}; --honest of `discreet service init` is that if "
            f"it is left out."
        )
    if design.learner == "flow-ucb":
        settings.setdefault("mixing", False)  # a manifest has one action per state and step
    if not trust.min_users:
        trust = dataclasses.replace(trust, min_users=max(2, int(design.episodes or 0) // 100))
    sampler = "simulation" if terms.rehearsal else "secure"
    design = dataclasses.replace(design, trust=trust, settings=settings, sampler=sampler)
    try:
        for name in ("", "analyser", "shuffler", "enroller", "device"):
            (folder / name).mkdir(mode=0o700 if name else 0o755, parents=not name)
        begun = Study.begin(folder / "analyser" / "study.db", design)
        key = make_signing_key(folder / "analyser" / "signing.key")
        charter = charter_of(begun, trust, terms, key.public_key().public_bytes_raw())
        check_possible(charter)
        check_study(charter, begun)
        charter.verify()
        write_atomically(folder / "charter.json", charter.data)
        _write_configs(folder, charter, url, store)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Service(folder, charter)


def check_possible(charter: Charter) -> None:
    """Refuse what could never open: manifests or reports beyond what anybody takes or can make."""
    device, most = charter.smallest, (1 << 53) - 1
    manifest = Manifest(
        study=charter.id,
        number=most,
        batch=most,
        previous=charter.id,
        ledger=charter.id,
        abandons=most,
        signer=charter.signing_key,
        users=most,
        policy=[[charter.actions - 1] * charter.states] * charter.horizon,
        layout=layout_of(device.groups),
        key=charter.signing_key,
        deadline=most,
    )
    smaller = "fewer states or steps"
    if (size := len(manifest.data) + manifests.SIGNATURE) > manifests.LARGEST:
        raise InvalidInputError(
            f"Expected a manifest of at most {manifests.LARGEST:,} bytes, got {size:,} for "
            f"{charter.states:,} states and {charter.horizon:,} steps, which every device fetches. "
            f"Ask for {smaller}."
        )
    seconds = device.messages * SEAL
    if charter.largest_body > LARGEST_BODY or seconds > DEVICE_SECONDS:
        raise InvalidInputError(
            f"In a batch of {charter.min_users:,} users a report has {device.messages:,} envelopes "
            f"({charter.largest_body:,} bytes): a phone would need {seconds:,.0f} s to seal them, "
            f"at most {DEVICE_SECONDS} s and {LARGEST_BODY:,} bytes are allowed. Ask for a larger "
            f"min_users (--min-users), which share the noise, a larger epsilon, or {smaller}."
        )


def charter_of(study: Study, trust: Shuffle, terms: Terms, signing_key: bytes) -> Charter:
    """The charter of a study that has begun."""
    mechanism = study.mechanism
    if not isinstance(mechanism, BatchMechanism) or not hasattr(mechanism, "groups"):
        able = [
            s.name for s in mechanisms("shuffle", "batch").values() if hasattr(s.load(), "groups")
        ]
        raise UnsupportedError(
            f"A service needs Shuffle(..., mechanism={' or '.join(map(repr, able))}) and a learner "
            f"in batches, such as 'flow-ucb'."
        )
    names, problem = study.names, study.problem
    if study.batch_size < mechanism.min_users:
        raise UnsupportedError(
            f"This learner asks for {study.batch_size} users at first, and no batch may have fewer "
            f"than min_users={mechanism.min_users}; take 'flow-ucb', which asks for as many."
        )
    certificate, (_, noise) = _certificate(mechanism), mechanism.certified()
    return Charter(
        purpose=terms.purpose,
        names={
            "states": tuple(str(name) for name in names.states),
            "actions": tuple(str(name) for name in names.actions),
            "steps": tuple(str(name) for name in names.steps),
        },
        start=tuple(i for i, begins in enumerate(problem.start.tolist()) if begins),
        statistics=tuple(mechanism.statistics),
        last_transitions=mechanism.last_transitions,
        epsilon=_validate.exact(trust.epsilon),
        delta=_validate.exact(trust.delta),
        honest=_validate.exact(trust.honest),
        mean=noise["mean"],
        certificate=certificate.to_dict(),
        min_users=mechanism.min_users,
        patience=terms.patience,
        signing_key=signing_key,
        participations=mechanism.guarantee.participations,
        rehearsal=terms.rehearsal,
        allowed=tuple(rule.to_dict() for rule in names.allowed),
    )


def _certificate(mechanism: BatchMechanism) -> Certificate:
    """That its noise keeps its delta: that, and not the least delta, is what is guaranteed."""
    certificate: Certificate = certify(mechanism)
    if not certificate.holds:
        raise UnsupportedError(certificate.sentence())
    return dataclasses.replace(certificate, bound=certificate.claim.delta)


def make_tickets(folder: Path, count: int) -> tuple[Path, Path]:
    """More tickets for the enroller to hand out, and their digests for the shuffler.

    Args:
        folder: what `setup_service` made, or what the enroller was given of it.
        count: how many more. They bear the mark in ``recovery.txt``, if the shuffler's store was
            ever recovered.

    Returns:
        The file of tickets, and the file of all digests that the shuffler is to have: its own if it
        is there, else the enroller's, to be handed over. The enroller always has one.
    """
    own, theirs = folder / "enroller", folder / "shuffler"
    if not own.is_dir():
        raise InvalidInputError(
            f"There is no folder 'enroller' in {str(folder)!r}: tickets are the enroller's. Give "
            f"the folder that `init` made, or the one in which the enroller keeps 'enroller'."
        )
    where = own / "tickets.txt"
    files = [one / "digests.txt" for one in (own, theirs) if one.is_dir()]
    marks = [ticket.read_mark(one / "recovery.txt") for one in (theirs, own)]
    tickets, new = (ticket.read(where) if where.exists() else []), ticket.make(count)
    digests = set().union(*(ticket.read_digests(file) for file in files if file.exists()))
    known = {one[: ticket.SIZE] for one in digests}
    digests.update(one for one in map(ticket.digest, tickets) if one not in known)
    digests.update(ticket.digest(one, marks[0] or marks[1]) for one in new)
    tickets += new
    for file in files:
        ticket.write_digests(file, sorted(digests))
    ticket.write(where, tickets)
    return where, files[-1]


def rotate_token(config: configs.AnalyserConfig) -> str:
    """A new token for the analyser's next start; what the shuffler's file has to say.

    The old one goes on until then, so the shuffler takes both for a while.
    """
    old, token = config.token, secrets.token_urlsafe(32)
    write_atomically(config.path(config.token_file), token.encode(), private=True)
    _hand_over(config.path(config.token_file))
    return ",".join(hashlib.sha256(one.encode()).hexdigest() for one in (token, old))


def rotate_signing_key(config: configs.AnalyserConfig) -> None:
    """A new signing key, which the next manifest names: signed with the old one, and chained."""
    path = config.path(config.signing_key)
    old = old_of(path)
    if old.exists():
        raise InvalidInputError(
            f"{str(old)!r} is there: the last rotation is under way. Wait until the analyser has "
            f"signed a manifest with the new key and was started again."
        )
    read_signing_key(path)
    write_atomically(old, path.read_bytes(), private=True)
    make_signing_key(path)
    _hand_over(old, path)


def _hand_over(*paths: Path) -> None:
    """What root has written is the folder's owner's: the role has to read it."""
    for path in paths if os.geteuid() == 0 else ():
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def _write_configs(folder: Path, charter: Charter, url: str, store: str) -> None:
    token = secrets.token_urlsafe(32)
    write_atomically(folder / "analyser" / "token", token.encode(), private=True)
    digest = hashlib.sha256(token.encode()).hexdigest()
    url = url.replace("/studies/NAME", f"/studies/{charter.id.hex()}")
    fields = {
        "charter": "../charter.json",
        "url": url,
        "study": charter.id.hex(),
        "digests": "digests.txt",
        "token": digest,
        "store": store,
    } | configs.places(url, charter.id)
    for role in ("shuffler", "analyser", "device"):
        text = configs.template(role, **fields)
        # Of its owner alone: a database's password, or a ticket, may stand in it.
        write_atomically(folder / role / f"{role}.toml", text.encode(), private=True)
    ticket.write_digests(folder / "shuffler" / "digests.txt", [])
