"""`TableFormat`: all public facts about a table of episodes but its names, as a file can keep them.

A study that is given one reads its tables by it, so that every batch is read alike and the reader
of its dossier sees the range of the rewards and the cut points.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from discreet import _validate
from discreet._spelling import quoted
from discreet._types import JsonObject, Plain
from discreet.data import readers
from discreet.data.discretizer import Discretizer
from discreet.data.layout import Layout, Padding
from discreet.data.vocabulary import Vocabulary
from discreet.errors import InvalidInputError, UnknownNameError
from discreet.mdp.policies import Policy
from discreet.mdp.trajectories import Trajectories

_PARQUET = (".parquet", ".pq")
_PADDING = ("end", "reward")


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """How tables of episodes are written, in plain values.

    >>> form = TableFormat.from_dict({"columns": {"user": "patient"}, "reward_range": [0, 10]})
    >>> form.to_dict()
    {'columns': {'user': 'patient'}, 'reward_range': [0, 10]}

    Attributes:
        columns: role -> name of the column, as in `Layout`.
        cuts: the cut points of numeric columns, as `Cuts.to_dict` writes them.
        reward_range: the least and the largest reward that can be.
        clip_rewards: rewards beyond it count as its ends.
        padding: ``{"end": state or states, "reward": number}`` of episodes that ended early.
        delimiter: of CSV files.
        encoding: of CSV files.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    cuts: tuple[Mapping[str, Plain], ...] = ()
    reward_range: tuple[float, float] = (0.0, 1.0)
    clip_rewards: bool = False
    padding: JsonObject | None = None
    delimiter: str = ","
    encoding: str = "utf-8-sig"

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
        for key in ("cuts", "reward_range"):
            if key in given:
                given[key] = _listed(key, given[key])
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
        """The same facts beside the names; refuses what cannot be.

        Args:
            vocabulary: of states, actions and steps.
            policy: that the users followed: what padding fills in.
        """
        readers.check_delimiter(self.delimiter)
        readers.check_encoding(self.encoding)
        return Layout(
            vocabulary,
            columns=self.columns,
            discretizer=self.discretizer,
            reward_range=self.reward_range,
            clip_rewards=self.clip_rewards,
            padding=None if self.padding is None else _padding(self.padding, policy),
        )

    def read(
        self, path: str | Path, vocabulary: Vocabulary, policy: Policy | None = None
    ) -> tuple[Trajectories, list[str]]:
        """Episodes and users of a file; Parquet if it is called .parquet or .pq, else CSV."""
        from discreet.data import episodes, readers

        wanted = self.layout(vocabulary, policy)
        if Path(path).suffix.lower() in _PARQUET:
            with readers.parquet_files_opened(path) as table:
                return episodes.read_episodes(table, wanted)
        with readers.opened(path, self.delimiter, self.encoding) as text:
            return episodes.read_episodes(text, wanted)


def _listed(key: str, value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInputError(f"Expected {key} of a table as a list, got {quoted(value)}.")
    return tuple(value)


def _padding(plain: JsonObject, policy: Policy | None) -> Padding:
    if not isinstance(plain, Mapping) or "end" not in plain or set(plain) - set(_PADDING):
        raise InvalidInputError(
            f"Expected padding as {{end = state, reward = number}}, where the reward is 0 if left "
            f"out, got {quoted(plain)}."
        )
    _validate.real(reward=plain.get("reward", 0.0))
    return Padding(plain["end"], float(plain.get("reward", 0.0)), policy)
