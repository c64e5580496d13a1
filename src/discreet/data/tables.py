"""Tables of episodes: readers for files and dataframes, and `TableFormat`, kept in a file."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TextIO, TypeVar, Unpack

from discreet import _validate
from discreet._spelling import quoted
from discreet._types import JsonObject, Plain
from discreet.data.discretizer import Discretizer
from discreet.data.episodes import check_episodes, read_episodes
from discreet.data.layout import Absence, Layout, Options, Padding
from discreet.data.problems import Problems, TableReport
from discreet.data.sources import (
    FrameSource,
    Source,
    check_delimiter,
    check_encoding,
    guess_format,
    open_csv,
    open_excel,
    open_parquet,
)
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.policies import Policy
from discreet.mdp.trajectories import Trajectories

_PARQUET = (".parquet", ".pq")
_Steps = TypeVar("_Steps", Padding, Absence)


def read_frame(
    frame: object, vocabulary: Vocabulary, **options: Unpack[Options]
) -> tuple[Trajectories, list[str]]:
    """Episodes from a dataframe with one row per user and step, in any order.

    >>> visits = {
    ...     "user": ["ann", "ann", "bob", "bob"],
    ...     "step": [1, 2, 1, 2],
    ...     "state": ["ill", "well", "ill", "ill"],
    ...     "action": ["treat", "wait", "wait", "treat"],
    ...     "reward": [3, 9, 2, 2],
    ... }
    >>> names = Vocabulary(states=["ill", "well"], actions=["wait", "treat"], steps=[1, 2])
    >>> episodes, users = read_frame(visits, names, reward_range=(0, 10))
    >>> users, episodes.states[0].tolist(), episodes.rewards[0].tolist()
    (['ann', 'bob'], [0, 1, 1], [0.3, 0.9])

    A user's next state is the state of the next row. After the last step it is the column
    ``next_state``, or the state of a closing row, which has no action and no reward. If neither
    is there, the last state is repeated: no value depends on it, unless the dynamics are said
    to be stationary, when it counts as an observation that nobody made.

    Args:
        frame: of pandas, polars, pyarrow or another library that narwhals knows, a dictionary of
            columns, or any object with ``__arrow_c_stream__`` (with the extra `tables`).
        vocabulary: the public names of states, actions and steps.
        options: columns, reward_range, padding and others; see `Layout`.

    Several episodes of a user are told apart by a column ``episode``.

    Returns:
        The episodes, and the name of each one's user in the same order, as
        ``study.tell(users=...)`` and ``fit(users=...)`` take them.

    Raises:
        InvalidInputError: with the row, the column and the value. The message shows raw data:
            it is for the operator whom a central study trusts, and for no log.
    """
    return read_episodes(FrameSource(frame), Layout(vocabulary, **options))


def read_csv(
    file: str | Path | TextIO,
    vocabulary: Vocabulary,
    *,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
    **options: Unpack[Options],
) -> tuple[Trajectories, list[str]]:
    """Episodes from a CSV file, or an open one, with a header; see `read_frame`.

    Errors name the line. The default encoding is UTF-8 with or without a byte-order mark.
    """
    layout = Layout(vocabulary, **options)
    with open_csv(file, delimiter, encoding) as source:
        return read_episodes(source, layout)


def read_parquet(
    path: str | Path, vocabulary: Vocabulary, **options: Unpack[Options]
) -> tuple[Trajectories, list[str]]:
    """Episodes from a Parquet file (extra `tables`); see `read_frame`."""
    layout = Layout(vocabulary, **options)
    with open_parquet(path) as source:
        return read_episodes(source, layout)


def read_excel(
    path: str | Path,
    vocabulary: Vocabulary,
    *,
    sheet: str | None = None,
    **options: Unpack[Options],
) -> tuple[Trajectories, list[str]]:
    """Episodes from a workbook, .xlsx (extra `excel`), with its only ``sheet`` or a named one."""
    layout = Layout(vocabulary, **options)
    with open_excel(path, sheet) as source:
        return read_episodes(source, layout)


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """All public facts about a table of episodes but its names, in plain values.

    A study that is given one reads its tables by it, so that every batch is read alike and the
    reader of its dossier sees the range of the rewards and the cut points.

    >>> form = TableFormat.from_dict({"columns": {"user": "patient"}, "reward_range": [0, 10]})
    >>> form.to_dict()
    {'columns': {'user': 'patient'}, 'reward_range': [0, 10]}

    Attributes:
        columns: role -> name of the column, as in `Layout`.
        cuts: the cut points of numeric columns, as `Cuts.to_dict` writes them.
        reward_range: the least and the largest reward that can be.
        clip_rewards: rewards beyond it count as its ends.
        padding: ``{"end": state or states, "reward": number}`` of episodes that ended early.
        late: ``{"state": state, "reward": number}`` of steps before somebody's first row.
        gap: the same for steps between somebody's rows.
        missing: words in cells that stand for nothing.
        missing_state: the state of rows that have none.
        missing_reward: what a row with an action and without a reward earned.
        decimal: what stands before the decimals, a point or a comma.
        sheet: of a workbook that has several.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    cuts: tuple[Mapping[str, Plain], ...] = ()
    reward_range: tuple[float, float] = (0.0, 1.0)
    clip_rewards: bool = False
    padding: JsonObject | None = None
    late: JsonObject | None = None
    gap: JsonObject | None = None
    missing: tuple[str, ...] = ()
    missing_state: str | int | None = None
    missing_reward: float | None = None
    decimal: str = "."
    delimiter: str = ","
    encoding: str = "utf-8-sig"
    sheet: str | None = None

    @classmethod
    def from_dict(cls, plain: JsonObject) -> Self:
        """From plain values; an unknown key is refused with a suggestion."""
        if not isinstance(plain, Mapping):
            raise InvalidInputError(f"Expected the facts of a table, got {quoted(plain)}.")
        known = [item.name for item in fields(cls)]
        for key in plain:
            if key not in known:
                raise UnknownNameError("fact of a table", str(key), known)
        given = dict(plain)
        for key in ("cuts", "reward_range", "missing"):
            if not isinstance(given.get(key, ()), list | tuple):
                raise InvalidInputError(
                    f"Expected {key} of a table as a list, got {quoted(given[key])}."
                )
            given |= {key: tuple(given[key])} if key in given else {}
        return cls(**given)

    def to_dict(self) -> dict[str, Plain]:
        """Plain values of what is not as usual."""
        usual = type(self)()
        plain: dict[str, Plain] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value != getattr(usual, item.name):
                plain[item.name] = list(value) if isinstance(value, tuple) else value
        return plain

    @property
    def discretizer(self) -> Discretizer | None:
        """Of the cut points, if there are any."""
        return Discretizer.from_dict({"cuts": list(self.cuts)}) if self.cuts else None

    def layout(self, vocabulary: Vocabulary, policy: Policy | None = None) -> Layout:
        """The same facts beside the names; absent people follow the ``policy``."""
        check_delimiter(self.delimiter)
        check_encoding(self.encoding)
        return Layout(
            vocabulary,
            columns=self.columns,
            discretizer=self.discretizer,
            reward_range=self.reward_range,
            clip_rewards=self.clip_rewards,
            padding=_filled(Padding, "padding", "end", self.padding),
            late=_filled(Absence, "late", "state", self.late),
            gap=_filled(Absence, "gap", "state", self.gap),
            missing=self.missing,
            missing_state=self.missing_state,
            missing_reward=self.missing_reward,
            decimal=self.decimal,
            policy=policy,
        )

    def read(
        self, path: str | Path, vocabulary: Vocabulary, policy: Policy | None = None
    ) -> tuple[Trajectories, list[str]]:
        """Episodes and users of a file: Parquet (.parquet, .pq), Excel (.xlsx), otherwise CSV."""
        layout = self.layout(vocabulary, policy)
        with self._opened(path) as source:
            return read_episodes(source, layout)

    def check(self, path: str | Path, vocabulary: Vocabulary) -> TableReport:
        """All problems of a file at once; they show raw data, to the operator who has it."""
        layout, problems = self.layout(vocabulary), Problems(collect=True)
        rows = people = 0
        try:
            with self._opened(path) as source:
                rows, people = check_episodes(source, layout, problems)
        except InvalidInputError as error:  # it ends here, after what was found before
            if not Path(path).is_file():
                raise
            problems.add("table that cannot be read", str(error), [""], [""], str(error))
        return TableReport(rows, people, tuple(problems.found))

    def _opened(self, path: str | Path) -> AbstractContextManager[Source]:
        ending = Path(path).suffix.lower()
        if ending in _PARQUET:
            return open_parquet(path)
        if ending == ".xlsx":
            return open_excel(path, self.sheet)
        return open_csv(path, self.delimiter, self.encoding)


def read_header(path: str | Path, sheet: str | None = None) -> tuple[list[str], dict[str, str]]:
    """The names of a file's columns, and the facts of its format that its first line shows.

    No other line is read: rows are people.
    """
    facts, ending = {} if sheet is None else {"sheet": sheet}, Path(path).suffix.lower()
    if ending not in (*_PARQUET, ".xlsx"):
        facts = guess_format(Path(path))
    with TableFormat.from_dict(facts)._opened(path) as source:
        names = [name for name in source.names if name]
    for name in () if ending in _PARQUET else names:
        if any(map(str.isdigit, name)) and not any(map(str.isalpha, name)):
            raise InvalidInputError(
                f"Expected the names of columns in the first line of {quoted(str(path), 200)}, got "
                f"{quoted(name)}, which looks like somebody's data; give the table a first line "
                f"with names that have letters."
            )
    return names, facts


def _filled(
    kind: Callable[[Any, float], _Steps], name: str, state: str, plain: JsonObject | None
) -> _Steps | None:
    """Steps that are filled in, as the design says."""
    if plain is None:
        return None
    if not isinstance(plain, Mapping) or state not in plain or set(plain) - {state, "reward"}:
        raise InvalidInputError(
            f'Expected {name} = {{{state} = "STATE", reward = NUMBER}}, where the reward is 0 if '
            f"left out, got {quoted(plain)}."
        )
    reward = plain.get("reward", 0.0)
    _validate.real(reward=reward)
    return kind(plain[state], float(reward))
