"""`discreet study reissue`: the pending batch once more, for other users or for fewer."""

from typing import Annotated, cast

import typer

from discreet.cli._options import Head, Json
from discreet.cli.study._shared import StudyFile, answer, counted, facts_of, opened

Users = Annotated[
    int | None, typer.Option(help="How many to ask for now; as many as before if left out.")
]
WhoReturns = Annotated[
    str,
    typer.Option(
        help="Who may be asked again: nobody (only new users), unseen (the same users: no report "
        "has left the shuffler, which deleted them), seen (both releases are charged; not under "
        "shuffle, where a part of a batch has too little noise)."
    ),
]


def command(
    file: StudyFile,
    users: Users = None,
    returning: WhoReturns = "nobody",
    head: Head = None,
    json: Json = False,
) -> None:
    """Open the pending batch again; reports made for it so far are refused from now on."""
    from discreet.study.study import Returning

    study = opened(file, head)
    study.reissue(users, returning=cast("Returning", returning))
    rows = [
        ("asked for now", counted(study.batch_size, "user")),
        ("promised to each", str(study.guarantee)),
        ("token", study.token),
        ("head", study.head),
    ]
    plain = {**facts_of(study), "token": study.token}
    answer(plain, f"Study {file}: batch {study.batches} again", rows, json=json)
