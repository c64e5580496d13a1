"""Tables of episodes: files and dataframes, read or checked by their `TableFormat`."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from discreet._spelling import quoted
from discreet.data.episodes import check_episodes, read_episodes
from discreet.data.layout import Layout, TableFormat
from discreet.data.problems import Problems, TableProblems
from discreet.data.sources import (
    FrameSource,
    Source,
    guess_format,
    open_csv,
    open_excel,
    open_parquet,
)
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError
from discreet.mdp.policies import Policy
from discreet.mdp.trajectories import Trajectories

_PARQUET = (".parquet", ".pq")


def read_table(
    table: object, vocabulary: Vocabulary, *, policy: Policy | None = None, **facts: Any
) -> tuple[Trajectories, list[str]]:
    """Episodes from a table with one row per user and step, in any order.

    >>> visits = {
    ...     "user": ["ann", "ann", "bob", "bob"],
    ...     "step": [1, 2, 1, 2],
    ...     "state": ["ill", "well", "ill", "ill"],
    ...     "action": ["treat", "wait", "wait", "treat"],
    ...     "reward": [3, 9, 2, 2],
    ... }
    >>> names = Vocabulary(states=["ill", "well"], actions=["wait", "treat"], steps=[1, 2])
    >>> episodes, users = read_table(visits, names, reward_range=(0, 10))
    >>> users, episodes.states[0].tolist(), episodes.rewards[0].tolist()
    (['ann', 'bob'], [0, 1, 1], [0.3, 0.9])

    A user's next state is the state of the next row. After the last step it is the column
    ``next_state``, or the state of a closing row, which has no action and no reward. If neither
    is there, the last state is repeated: no value depends on it, unless the dynamics are said
    to be stationary, when it counts as an observation that nobody made.

    Args:
        table: a file by its path (Parquet, .parquet or .pq; Excel, .xlsx; otherwise CSV), an open
            CSV file, a dataframe of pandas, polars, pyarrow or another library that narwhals knows,
            a dictionary of columns, or any object with ``__arrow_c_stream__``. Extras: `tables`
            for Parquet and Arrow, `excel`.
        vocabulary: the public names of states, actions and steps.
        policy: whose actions are filled in for who was absent: that which the users followed.
        facts: columns, reward_range, padding and others; see `TableFormat`.

    Several episodes of a user are told apart by a column ``episode``.

    Returns:
        The episodes, and the name of each one's user in the same order, as
        ``study.tell(users=...)`` and ``fit(users=...)`` take them.

    Raises:
        InvalidInputError: with the row (of a CSV file the line), the column and the value. The
            message shows raw data: it is for the operator whom a central study trusts, and for no
            log.
    """
    return read_by(table, Layout(vocabulary, TableFormat(**facts), policy))


def read_by(table: object, layout: Layout) -> tuple[Trajectories, list[str]]:
    """The same by a layout."""
    with _opened(table, layout.form) as source:
        return read_episodes(source, layout)


def check_table(path: str | Path, layout: Layout) -> TableProblems:
    """All problems of a file at once; they show raw data, to the operator who has it."""
    problems, rows, people = Problems(collect=True), 0, 0
    try:
        with _opened(path, layout.form) as source:
            rows, people = check_episodes(source, layout, problems)
    except InvalidInputError as error:  # it ends here, after what was found before
        if not Path(path).is_file():
            raise
        problems.add("table that cannot be read", str(error), [""], [""], str(error))
    return TableProblems(rows, people, tuple(problems.found))


def _opened(table: Any, form: TableFormat) -> AbstractContextManager[Source]:
    if not isinstance(table, str | Path):
        if hasattr(table, "readline"):
            return open_csv(table, form.delimiter, form.encoding)
        return nullcontext(FrameSource(table))
    ending = Path(table).suffix.lower()
    if ending in _PARQUET:
        return open_parquet(table)
    if ending == ".xlsx":
        return open_excel(table, form.sheet)
    return open_csv(table, form.delimiter, form.encoding)


def read_header(path: str | Path, sheet: str | None = None) -> tuple[list[str], dict[str, str]]:
    """The names of a file's columns, and the facts of its format that its first line shows.

    No other line is read: rows are people.
    """
    facts, ending = {} if sheet is None else {"sheet": sheet}, Path(path).suffix.lower()
    if ending not in (*_PARQUET, ".xlsx"):
        facts = guess_format(Path(path))
    with _opened(path, TableFormat.from_dict(facts)) as source:
        names = [name for name in source.names if name]
    for name in () if ending in _PARQUET else names:
        if any(map(str.isdigit, name)) and not any(map(str.isalpha, name)):
            raise InvalidInputError(
                f"Expected the names of columns in the first line of {quoted(str(path), 200)}, got "
                f"{quoted(name)}, which looks like somebody's data; give the table a first line "
                f"with names that have letters."
            )
    return names, facts
