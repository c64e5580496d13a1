"""The reviewer's bundle: the dossier with all that its claims are checked by, as one zip file.

Who has Python and nothing else unpacks it and runs ``python -I review.py``.

**What it tells about people** is what the dossier tells, and no more:

- the ledger: how many took part in which batch, which is public, and hashes;
- the participants: keyed digests of their names (BLAKE2b, 256 bits of key), sorted within a batch.
  Without the key they are random numbers, and the key is not here. Equal ones show that somebody,
  nobody knows who, came again: that people took part, and when, is public;
- the design: public. Its seed breaks ties and rounds rewards, by the place of a user in the batch:
  the releases keep their guarantee whatever it is. (Of a rehearsal it gives the noise away.)
- the policy: computed from releases;
- left out: the key of the names, tokens of pending batches, and the study's knowledge
  (noisy counts).

The file is a function of the study and of the minute in which the page was made: entries are
stored as they are, in one order, with one date.
"""

import hashlib
import io
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._files import check_output, write_atomically
from discreet.errors import InvalidInputError, StudyError
from discreet.privacy.certificates import verify as verifier
from discreet.study.dossier import review
from discreet.study.dossier.evidence import Progress
from discreet.study.dossier.page import (
    Material,
    certificates,
    commands,
    environment,
    gather,
    render,
)
from discreet.study.ledger import software

if TYPE_CHECKING:
    from discreet.study.study import Study

_DATE = (1980, 1, 1, 0, 0, 0)
_README = """\
The bundle of the study {name}
{line}

It is about the head {head}
and about no later one. Unpack it into an empty folder and run, with Python 3.11 or later:

    python -m zipfile -e review.zip review
    cd review
    python -I review.py --head {head}

Get the head, and the SHA-256 of the zip file, from the operator on another way than this bundle
(on paper, by telephone): whoever can edit one file can edit all of them, this one included.
`review.py` needs nothing but Python. It says what it checked, and what no file can show. It trusts
itself and `verify.py`: compare both with `study/dossier/review.py` and
`privacy/certificates/verify.py` in the source of discreet {version}, which you get elsewhere:

{programs}

{files}

Every claim of the dossier, and its command:

{commands}
"""
_FILES = {
    "dossier.html": "the page to sign",
    "review.py": "checks what the other files can confirm of it, and lists what they cannot",
    "verify.py": "checks a certificate with integers alone; proof on top",
    "certificate-*.json": "the proof that the noise is enough",
    "ledger.jsonl": "what happened, entry by entry, each with the hash of the one before it",
    "participants.bin": "16 bytes for each participant, in the order of the ledger: digests of "
    "names,\n  which nobody can test without the key, and the key is not here",
    "design.json": "what the study was told before anybody was asked",
    "policy.json": "what was learnt; `discreet.load_policy` reads it",
    "SHA256SUMS": "of all other files; `sha256sum -c SHA256SUMS` reads it",
}


def write_bundle(study: "Study", path: str | Path, *, progress: Progress = lambda _: None) -> str:
    """Write the bundle of a study; verified, certified and audited like `write_dossier`, now.

    Args:
        study: only read.
        path: ends in .zip.
        progress: called with what is under way.

    Returns:
        The SHA-256 of the file, for the reviewer, on another way than the file.
    """
    where = Path(path)
    try:
        check_output(where, ".zip")
        environment()
    except InvalidInputError as error:
        raise StudyError(str(error)) from None
    content = zipped(members(gather(study, progress)))
    try:
        write_atomically(where, content)
    except OSError as error:
        raise StudyError(f"Cannot write {str(where)!r}: {error.strerror}.") from None
    return hashlib.sha256(content).hexdigest()


def members(material: Material) -> dict[str, bytes]:
    """Name -> content of every file."""
    study = material.study
    with tempfile.TemporaryDirectory() as folder:
        study.save_policy(policy := Path(folder) / "policy.json")
        learnt = policy.read_bytes()
    lines, participants, design = study.record
    made = {
        "dossier.html": render(material).encode(),
        "review.py": Path(review.__file__).read_bytes(),
        "verify.py": Path(verifier.__file__).read_bytes(),
        "ledger.jsonl": "".join(f"{line}\n" for line in lines).encode(),
        "participants.bin": participants,
        "design.json": design.encode(),
        "policy.json": learnt,
        **{name: f"{text}\n".encode() for name, text in certificates(material).items()},
    }
    made["README.txt"] = _readme(material, made).encode()
    sums = (f"{hashlib.sha256(made[name]).hexdigest()}  {name}\n" for name in sorted(made))
    return made | {review.SUMS: "".join(sums).encode()}


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip file with these members: equal ones give equal bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, _DATE)
            member.create_system, member.external_attr = 3, 0o644 << 16
            archive.writestr(member, files[name])
    return made.getvalue()


def _readme(material: Material, made: dict[str, bytes]) -> str:
    study = material.study
    listed = "\n".join(f"- {name}: {text}" for name, text in _FILES.items())
    how = "\n".join(
        f"- {claim}\n  needs {needs}:\n    {text}" for claim, needs, text in commands(material)
    )
    name = study.path.name
    line = "=" * (len("The bundle of the study ") + len(name))
    programs = "\n".join(
        f"    {hashlib.sha256(made[file]).hexdigest()}  {file}"
        for file in ("review.py", "verify.py")
    )
    return _README.format(
        name=name,
        line=line,
        head=study.head,
        version=software()["discreet"],
        programs=programs,
        files=listed,
        commands=how,
    )
