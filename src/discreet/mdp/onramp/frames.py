"""Dataframes: pandas, polars, pyarrow, a dictionary of columns, or anything that speaks Arrow.

No library is needed for the first four: a frame tells the names of its columns, and a column turns
itself into a list. What cannot do that is asked for Arrow data (the Arrow PyCapsule interface,
``__arrow_c_stream__``), last for the old interchange protocol (``__dataframe__``: deprecated in
pandas 3, removed from polars 2); both are read by pyarrow (extra `tables`).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from discreet._spelling import quoted
from discreet.errors import InvalidInputError, MissingExtraError
from discreet.mdp.onramp.sources import Part


class FrameSource:
    """A dataframe as a `Source`; rows are numbered from 0."""

    def __init__(self, frame: object) -> None:
        self._frame = _readable(frame)
        self.names = _names(self._frame)

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """All rows at once; each column becomes a list when it is asked for."""
        lists = _Lists(self._frame, columns)
        sizes = {name: lists.size(name) for name in columns}
        if len(set(sizes.values())) > 1:
            raise InvalidInputError(
                "Expected columns of one length, got "
                + ", ".join(f"{quoted(name)}: {size}" for name, size in sizes.items())
                + "."
            )
        yield Part(lists, np.arange(sizes[columns[0]]))

    def at(self, place: int) -> str:
        return f"row {place} (the first is 0)"


class _Lists(Mapping[str, Sequence[object]]):
    """Columns of a frame; only the one in use is a list in memory."""

    def __init__(self, frame: object, columns: Sequence[str]) -> None:
        self._frame = frame
        self._columns = columns

    def __getitem__(self, name: str) -> Sequence[object]:
        return _list(_column(self._frame, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def size(self, name: str) -> int:
        column = _column(self._frame, name)
        return len(column) if hasattr(column, "__len__") else len(_list(column))


def _readable(frame: object) -> object:
    """The frame itself if its columns turn into lists, else a pyarrow table of it."""
    if isinstance(frame, Mapping) or _listable(frame):
        return frame
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__dataframe__"):
        return _pyarrow_table(frame)
    raise InvalidInputError(
        f"Expected a dataframe (pandas, polars, pyarrow, a dictionary of columns, or an object "
        f"with __arrow_c_stream__), got {type(frame).__name__}; read files with from_csv or "
        f"from_parquet, and collect() what is lazy first."
    )


def _listable(frame: object) -> bool:
    if hasattr(frame, "collect") or not hasattr(frame, "__getitem__"):  # lazy frames hold no values
        return False
    if not hasattr(frame, "column_names") and not hasattr(frame, "columns"):
        return False
    names = _names(frame)
    if len(set(names)) < len(names):  # pandas allows it, and then answers with a frame
        return True
    return not names or _as_list(_column(frame, names[0])) is not None


def _names(frame: object) -> list[str]:
    """Columns whose names are no text cannot be asked for."""
    names = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", None)
    every = getattr(frame, "columns", ()) if names is None else names
    return [name for name in every if isinstance(name, str)]


def _column(frame: object, name: str) -> object:
    column: object = frame[name]  # type: ignore[index]
    return column


def _as_list(column: object) -> Callable[[], list[object]] | None:
    """How this column turns into a list of plain Python values, if it can."""
    for method in ("to_pylist", "to_list", "tolist"):
        made: Callable[[], list[object]] | None = getattr(column, method, None)
        if made is not None:
            return made
    return None


def _list(column: object) -> Sequence[object]:
    made = _as_list(column)
    if made is not None:
        return made()
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):
        return column
    raise InvalidInputError(
        f"Expected columns that are lists or arrays, got one of type {type(column).__name__}."
    )


def _pyarrow_table(frame: object) -> object:
    """A pyarrow table of what speaks Arrow, or else the old protocol."""
    try:
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    except ImportError:
        raise MissingExtraError("pyarrow", "tables") from None
    convert = pa.table if hasattr(frame, "__arrow_c_stream__") else from_dataframe
    try:
        with warnings.catch_warnings():  # that the old protocol is old is for its author to know
            warnings.simplefilter("ignore")
            table: object = convert(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"Expected a dataframe that Arrow can read, got {type(frame).__name__}: "
            f"{str(error).splitlines()[0]}"
        ) from None
    return table
