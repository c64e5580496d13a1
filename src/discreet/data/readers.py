"""What all sources of a table have in common."""

import codecs
import csv
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

import numpy as np

from discreet._spelling import quoted, spelled
from discreet._types import IntArray
from discreet.data.vocabulary import nearest
from discreet.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Part:
    """Some rows of a table.

    Attributes:
        columns: name -> the column's values as a list, made when it is asked for.
        places: ``int64[rows]``, where each row stands: its number, or its line in a file.
    """

    columns: Mapping[str, Sequence[object]]
    places: IntArray


class Source(Protocol):
    """A table that can be read once, from top to bottom."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """Its rows, with at least these columns."""

    def at(self, place: int) -> str:
        """A row's place in words."""


def check_columns(source: Source, needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column or has it twice."""
    for name in needed:
        found = list(source.names).count(name)
        if found > 1:
            raise InvalidInputError(
                f"Expected one column {quoted(name)}, got {found}; rename all but one."
            )
        if not found:
            raise InvalidInputError(
                f"Expected a column {quoted(name)}, got {_listed(source.names)}; "
                f"{nearest(name, source.names)} Say which column is which with "
                f"columns={{role: name}}, and give the table a header if it has none."
            )


def refusal(rule: str, value: object, column: str, at: str, remedy: str) -> InvalidInputError:
    """One sentence with the rule, the value, its column and place, and the remedy."""
    return InvalidInputError(
        f"Expected {rule}, got {quoted(value)} in column {quoted(column)}, {at}; {remedy}"
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(quoted(name, 30) for name in names[:12])
    return f"{listed or 'none'}{', ...' if len(names) > 12 else ''}"


# CSV files, read as a stream with the standard library; refusals name the line.


_ROWS = 2_000
"""Rows in memory as text at a time."""

_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


class CsvSource:
    """An open CSV file as a `Source`; rows are known by their line, the header's is 1."""

    def __init__(self, file: TextIO, title: str, delimiter: str) -> None:
        self._title = title
        check_delimiter(delimiter)
        self._reader = csv.reader(file, delimiter=delimiter, strict=True)
        header = next((rows[0] for _, rows in self._blocks(1)), None)
        if header is None:
            raise InvalidInputError(f"Expected a header and rows, got nothing: {title} is empty.")
        self.names = [spelled(name) for name in header]
        if len(self.names) == 1:
            _hint_at_delimiter(self.names[0], title)

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """Its rows, some thousands at a time."""
        for lines, rows in self._blocks(_ROWS):
            if set(map(len, rows)) != {len(self.names)}:
                self._refuse_ragged(lines, rows)
            values = dict(zip(self.names, zip(*rows, strict=True), strict=True))
            yield Part({name: values[name] for name in columns}, np.array(lines))

    def at(self, place: int) -> str:
        return f"line {place} of {self._title}"

    def _blocks(self, size: int) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Lines and fields of some rows at a time, blank ones left out."""
        reader = self._reader
        while True:
            first, rows, ends = reader.line_num, [], []
            try:
                for row in islice(reader, size):
                    rows.append(row)
                    ends.append(reader.line_num)
            except csv.Error as error:
                raise InvalidInputError(
                    f"Expected CSV, got a row that is none at {self.at([first, *ends][-1] + 1)} "
                    f'({error}); quote fields like "this", and double the quotes inside.'
                ) from None
            if not rows:
                return
            lines = [end + 1 for end in [first, *ends[:-1]]]  # a quoted field may hold several
            filled = [i for i, row in enumerate(rows) if row]
            if filled:
                yield [lines[i] for i in filled], [rows[i] for i in filled]

    def _refuse_ragged(self, lines: Sequence[int], rows: Sequence[list[str]]) -> None:
        for line, row in zip(lines, rows, strict=True):
            if len(row) != len(self.names):
                raise InvalidInputError(
                    f"Expected {len(self.names)} fields as in the header, got {len(row)} at "
                    f"{self.at(line)}; correct the row, and quote fields that hold the delimiter."
                )


def check_delimiter(delimiter: object) -> None:
    """Refuse what cannot stand between fields."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\r\n"':
        raise InvalidInputError(f"Expected a delimiter of one character, got {quoted(delimiter)}.")


def check_encoding(encoding: object) -> None:
    """Refuse what is no encoding of text."""
    try:
        if isinstance(encoding, str):
            "".encode(encoding)
            return
    except (LookupError, ValueError):
        pass
    raise InvalidInputError(
        f"Expected an encoding that Python knows, got {quoted(encoding)}; try 'utf-8-sig'."
    )


@contextmanager
def opened(file: str | Path | TextIO, delimiter: str, encoding: str) -> Iterator[CsvSource]:
    """A CSV file as a `Source`, closed at the end if it was opened here."""
    if not isinstance(file, str | Path):
        yield CsvSource(file, "the file", delimiter)
        return
    path = Path(file)
    title = quoted(str(path), 200)
    check_encoding(encoding)
    try:
        with path.open(encoding=encoding, newline="") as text:
            yield CsvSource(text, title, delimiter)
    except UnicodeError:
        raise _wrong_encoding(path, title, encoding) from None
    except OSError as error:
        raise InvalidInputError(
            f"Expected a CSV file that can be read, got {title}: {error.strerror}."
        ) from None


def _wrong_encoding(path: Path, title: str, encoding: str) -> InvalidInputError:
    """The sentence for a file that does not decode, with the first line that does not."""
    with path.open("rb") as file:
        mark = _MARKS.get(file.read(2))
        file.seek(0)
        line = next((n for n, text in enumerate(file, 1) if not _decodes(text, encoding)), 1)
    remedy = f"encoding={mark!r}" if mark else "its encoding (such as encoding='cp1252')"
    return InvalidInputError(
        f"Expected text in {encoding!r}, got other bytes in line {line} of {title}; save the file "
        f"as UTF-8 or pass {remedy}."
    )


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeError:
        return False
    return True


def _hint_at_delimiter(name: str, title: str) -> None:
    for mark in (";", "\t", "|", ","):
        if mark in name:
            raise InvalidInputError(
                f"Expected several columns, got one, {quoted(name)}, in {title}; pass "
                f"delimiter={mark!r}."
            )


# Parquet files, read part by part with pyarrow (extra `tables`).


class ParquetSource:
    """An open Parquet file as a `Source`; rows are numbered from 0."""

    def __init__(self, file: "pq.ParquetFile", title: str) -> None:
        self._file = file
        self._title = title
        self.names: list[str] = list(file.schema_arrow.names)

    def parts(self, columns: Sequence[str]) -> Iterator[Part]:
        """Its rows, some thousands at a time."""
        first = 0
        for batch in self._file.iter_batches(columns=list(dict.fromkeys(columns))):
            lists = {name: batch.column(name).to_pylist() for name in batch.schema.names}
            yield Part(lists, np.arange(first, first + batch.num_rows))
            first += batch.num_rows

    def at(self, place: int) -> str:
        return f"row {place} (the first is 0) of {self._title}"


@contextmanager
def parquet_files_opened(path: str | Path) -> Iterator[ParquetSource]:
    """A Parquet file as a `Source`, closed at the end."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "tables") from None
    title = quoted(str(path), 200)
    try:
        with pq.ParquetFile(path) as file:
            yield ParquetSource(file, title)
    except (OSError, UnicodeError, pa.ArrowException) as error:  # damage that no checksum shows
        raise InvalidInputError(
            f"Expected a Parquet file that can be read, got {title}: {str(error).splitlines()[0]}"
        ) from None


# Dataframes: pandas, polars, pyarrow, a dictionary of columns, or anything that speaks Arrow.
#
# No library is needed for the first four: a frame tells the names of its columns, and a column
# turns
# itself into a list. What cannot do that is asked for Arrow data (the Arrow PyCapsule interface,
# ``__arrow_c_stream__``), last for the old interchange protocol (``__dataframe__``: deprecated in
# pandas 3, removed from polars 2); both are read by pyarrow (extra `tables`).


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
