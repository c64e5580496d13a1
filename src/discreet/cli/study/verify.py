"""`discreet study verify`: the whole file against its chain of hashes."""

from discreet.cli._options import Head, Json
from discreet.cli._output import Progress
from discreet.cli.study._shared import StudyFile, answer, key_of, key_rows, opened, promise_of


def command(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """Check the whole file: pages, chain of hashes, nobody counted twice. It is only read."""
    with Progress(quiet=json) as progress:
        progress(str(file))
        study = opened(file, head, to_read=True)
        study.verify()
    plain = {
        "study": str(file),
        "verified": True,
        **promise_of(study.guarantee),
        "users": study.users,
        "batches": study.batches,
        "key": key_of(study),
        "head": study.head,
        "head_given": head,
    }
    newest = "has had this head" if head else "unknown: give the --head that you noted"
    rows = [
        ("file", "whole: every row matches the chain of hashes"),
        ("users", f"{study.users:,} in {study.batches:,} batches, nobody twice"),
        ("newest copy", newest),
        ("promised to every user", str(study.guarantee)),
        *key_rows(study),
        ("head", study.head),
    ]
    answer(plain, f"Study {file}", rows, json=json)
