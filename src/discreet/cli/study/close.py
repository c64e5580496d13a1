"""`discreet study close`: the end, before all users came."""

from discreet.cli._options import Json
from discreet.cli.study._shared import Head, StudyFile, answer, facts_of, opened


def command(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """End a study before all users came; what was learnt stays."""
    study = opened(file, head)
    study.close()
    rows = [
        ("users", f"{study.users:,} in {study.batches:,} batches"),
        ("promised to each", str(study.guarantee)),
        ("value of the policy", str(study.value)),
        ("head", study.head),
    ]
    answer(facts_of(study), f"Study {file} is closed", rows, json=json)
