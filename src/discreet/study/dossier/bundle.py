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

The zip file is a function of its members: they are stored as they are, in one order, with one date.
The page is one of all others (`page.render`).
"""

import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import discreet
from discreet._files import check_output, write_atomically
from discreet.errors import InvalidInputError, StudyError
from discreet.privacy.certificates import verify
from discreet.study.dossier import page, review
from discreet.study.dossier.evidence import Examined, Progress, Proof
from discreet.study.dossier.facts import facts_of, gather

if TYPE_CHECKING:
    from discreet.study.study import Study

_DATE = (1980, 1, 1, 0, 0, 0)
_README = """\
The bundle of the study {name}

It is about the head {head}
and about no later one. Unpack it into an empty folder and run, with Python 3.11 or later:

    python -m zipfile -e review.zip review
    cd review
    python -I review.py --head {head}

Get the head, and the SHA-256 of the zip file, from the operator on another way than this bundle
(on paper, by telephone): whoever can edit one file can edit all of them, this one included.
`review.py` needs nothing but Python. It says what it checked, and what no file can show. It trusts
itself, `page.py` and `verify.py`: compare them with `study/dossier/review.py`,
`study/dossier/page.py` and `privacy/certificates/verify.py` in the source of discreet {version},
which you get elsewhere:

{programs}

Every file, and what it is:

{files}
"""
_FILES = {
    "dossier.html": "the page to sign, with the command for each of its claims",
    "facts.json": "what no other file says: the operator's word",
    "review.py": "checks what the files confirm of each other, and lists what they cannot",
    "page.py": "makes the page of the other files",
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
    """Write the bundle of a study: the file is verified, its noise certified and audited, now.

    Args:
        study: only read; a file that does not verify is refused.
        path: ends in .zip.
        progress: called with what is under way; the audit can take a minute.

    Returns:
        The SHA-256 of the file, for the reviewer, on another way than the file.
    """
    where = Path(path)
    try:
        check_output(where, ".zip")  # known before the audit, which takes long
    except InvalidInputError as error:
        raise StudyError(str(error)) from None
    content = zipped(members(study, *gather(study, progress)))
    try:
        write_atomically(where, content)
    except OSError as error:
        raise StudyError(f"Cannot write {str(where)!r}: {error.strerror}.") from None
    return hashlib.sha256(content).hexdigest()


def members(study: "Study", proofs: list[Proof], audit: Examined | None) -> dict[str, bytes]:
    """Name -> content of every file."""
    with tempfile.TemporaryDirectory() as folder:
        study.save_policy(policy := Path(folder) / "policy.json")
        learnt = policy.read_bytes()
    lines, participants, design = study.record
    facts = facts_of(study, proofs, audit)
    proven = [proof.text for proof in proofs if proof.text]
    made = {
        "review.py": Path(review.__file__).read_bytes(),
        "page.py": Path(page.__file__).read_bytes(),
        "verify.py": Path(verify.__file__).read_bytes(),
        "ledger.jsonl": "".join(f"{line}\n" for line in lines).encode(),
        "participants.bin": participants,
        "design.json": design.encode(),
        "policy.json": learnt,
        "facts.json": f"{json.dumps(facts, indent=1, ensure_ascii=False)}\n".encode(),
        **{f"certificate-{n}.json": f"{text}\n".encode() for n, text in enumerate(proven)},
    }
    programs = (
        f"    {hashlib.sha256(made[name]).hexdigest()}  {name}\n" for name in review.PROGRAMS
    )
    listed = (f"- {name}: {text}\n" for name, text in _FILES.items())
    version = discreet.__version__
    readme = _README.format(
        name=study.path.name,
        head=study.head,
        version=version,
        programs="".join(programs),
        files="".join(listed),
    )
    return finished(made | {"README.txt": readme.encode()})


def finished(files: dict[str, bytes]) -> dict[str, bytes]:
    """These, with the page that is made of them and the sums of all."""
    made = {name: files[name] for name in files if name != review.SUMS}
    made["dossier.html"] = page.render(made)
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
