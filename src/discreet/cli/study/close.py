"""`discreet study close`: the end, before all users came."""

from discreet.cli._options import Head, Json
from discreet.cli.study._shared import StudyFile, answer, counted, facts_of, opened, worth


def command(file: StudyFile, head: Head = None, json: Json = False) -> None:
    """End a study before all users came; what was learnt stays."""
    study = opened(file, head)
    study.close()
    rows = [
        ("users", f"{study.users:,} in {counted(study.batches, 'batch')}"),
        ("promised to each", str(study.guarantee)),
        ("value of the policy", worth(study)),
        ("head", study.head),
    ]
    answer(facts_of(study), f"Study {file} is closed", rows, json=json)
