"""Sources of a table: CSV (standard library), Parquet (pyarrow), Excel (openpyxl), dataframes."""

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TextIO
from zipfile import BadZipFile

import numpy as np

from discreet._spelling import quoted, spelled
from discreet._types import IntArray
from discreet.data.problems import Problems, Shown
from discreet.data.vocabulary import nearest
from discreet.errors import InvalidInputError, MissingExtraError

_ROWS = 2_000
"""Rows of a CSV file in memory as text at a time."""
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NARROW = re.compile(
    r"(?:dictionary<values=)?(?:float(?:32)?\b|(halffloat|float16))", re.IGNORECASE
)
"""Columns of floats with less than 64 bits, as numpy, narwhals and Arrow call them."""
_SEPARATOR = re.compile(r'\ufeff?"?sep=([^"\r\n])"?\r?\n?', re.IGNORECASE)


class Part(NamedTuple):
    """Some rows of a table: ``column(name)`` makes a list, ``places`` are row or line numbers."""

    column: Callable[[str], Sequence[object]]
    places: IntArray


class Source(Protocol):
    """A table that can be read once, from top to bottom."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its columns."""

    def parts(self, columns: Sequence[str], problems: Problems) -> Iterator[Part]:
        """Its rows, with at least these columns."""

    def at(self, place: int) -> str:
        """A row's place in words."""


def find_columns(
    names: Sequence[str], wanted: Mapping[str, str], problems: Problems
) -> dict[str, str]:
    """The table's own name of each wanted column; upper and lower case may differ.

    >>> find_columns(["Patient", "visit"], {"patient": "", "visit": ""}, Problems())
    {'patient': 'Patient', 'visit': 'visit'}

    Args:
        names: of the table's columns.
        wanted: column -> the line of a design that says what it is called.
        problems: what is not there, or twice.
    """
    found = {}
    for name, line in wanted.items():
        same = [n for n in names if n == name]
        same = same or [n for n in names if n.casefold() == name.casefold()]
        if len(same) == 1:
            found[name] = same[0]
        elif same:
            remedy = "rename all but one"
            sentence = f"Expected one column {quoted(name)}, got {len(same)}; {remedy}."
            problems.add(f"several columns {quoted(name)}", remedy, ["header"], [same], sentence)
        else:
            close = nearest(name, names)
            problems.add(
                f"no column {quoted(name)}",
                f"{line}, or give the table a header",
                ["header"],
                [Shown(close)],
                f"Expected a column {quoted(name)}, got {_listed(names)}; {close} Say which column "
                f"is which ({line}), and give the table a header if it has none.",
            )
    return found


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(quoted(name, 30) for name in names[:12])
    return f"{listed or 'none'}{', ...' if len(names) > 12 else ''}"


class CsvSource:
    """An open CSV file as a `Source`; rows are known by their line, the header's is 1."""

    def __init__(self, file: TextIO, title: str, delimiter: str) -> None:
        self._title = title
        check_delimiter(delimiter)
        first = file.readline()
        told = _SEPARATOR.fullmatch(first)  # a line for Excel, which others may not know
        self._skipped = int(told is not None)
        self._reader = csv.reader(
            file if told else chain([first], file),
            delimiter=told[1] if told else delimiter,
            strict=True,
        )
        header = next((rows[0] for _, rows in self._blocks(1)), None)
        if header is None:
            raise InvalidInputError(f"Expected a header and rows, got nothing: {title} is empty.")
        self.names = [spelled(name) for name in header]
        for mark in (";", "\t", "|", ",") if len(self.names) == 1 else ():
            if mark in self.names[0]:
                raise InvalidInputError(
                    f"Expected several columns, got one, {quoted(self.names[0])}, in {title}; "
                    f"write delimiter = {_toml(mark)} in [table]."
                )

    def parts(self, columns: Sequence[str], problems: Problems) -> Iterator[Part]:
        width = len(self.names)
        for lines, rows in self._blocks(_ROWS):
            if set(map(len, rows)) != {width}:
                pairs = [pair for pair in zip(lines, rows, strict=True) if len(pair[1]) != width]
                line, row = pairs[0]
                problems.add(
                    "row with too many or too few fields",
                    'correct the row; quote fields that hold the delimiter, or delimiter = ";" '
                    "in [table]",
                    [self.at(at) for at, _ in pairs],
                    [Shown(f"{len(row)} instead of {width}") for _, row in pairs],
                    f"Expected {width} fields as in the header, got {len(row)} at "
                    f"{self.at(line)}; correct the row, and quote fields that hold the "
                    f"delimiter.",
                )
            kept = [i for i, row in enumerate(rows) if len(row) == width]
            if kept:
                cells = zip(*(rows[i] for i in kept), strict=True)
                values = dict(zip(self.names, cells, strict=True))
                yield Part(values.__getitem__, np.array([lines[i] for i in kept]))

    def at(self, place: int) -> str:
        return f"line {place + self._skipped} of {self._title}"

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


def _toml(mark: str) -> str:
    return '"\\t"' if mark == "\t" else f'"{mark}"'


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
        f"Expected an encoding that Python knows, got {quoted(encoding)}; try "
        f'encoding = "utf-8-sig".'
    )


@contextmanager
def open_csv(file: str | Path | TextIO, delimiter: str, encoding: str) -> Iterator[CsvSource]:
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


def guess_format(path: Path) -> dict[str, str]:
    """Encoding and delimiter of a CSV file by its first line, where they are not as usual."""
    try:
        with path.open("rb") as file:
            line = file.readline()
    except OSError as error:
        raise InvalidInputError(
            f"Expected a table that can be read, got {quoted(str(path), 200)}: {error.strerror}."
        ) from None
    usual = _MARKS.get(line[:2]) or ("utf-8-sig" if _decodes(line, "utf-8-sig") else "cp1252")
    if usual == "utf-16":
        line = line[: len(line) // 2 * 2]
    text = line.decode(usual, "replace")
    mark = "," if _SEPARATOR.fullmatch(text) else max(",;\t|", key=text.count)
    facts = {"delimiter": mark, "encoding": usual}
    return {name: v for name, v in facts.items() if v not in (",", "utf-8-sig")}


def _wrong_encoding(path: Path, title: str, encoding: str) -> InvalidInputError:
    """The sentence for a file that does not decode, with the first line that does not."""
    with path.open("rb") as file:
        mark = _MARKS.get(file.read(2))
        file.seek(0)
        line = next((n for n, text in enumerate(file, 1) if not _decodes(text, encoding)), 1)
    remedy = f'encoding = "{mark}"' if mark else 'its encoding, such as encoding = "cp1252",'
    return InvalidInputError(
        f"Expected text in {encoding!r}, got other bytes in line {line} of {title}; save the file "
        f"as UTF-8, or write {remedy} in [table]."
    )


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeError:
        return False
    return True


@contextmanager
def open_parquet(path: str | Path) -> Iterator["FrameSource"]:
    """A Parquet file as a `Source`, a slice of its rows in memory at a time, closed at the end."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "tables") from None
    title = quoted(str(path), 200)
    try:
        with pq.ParquetFile(path) as file:
            yield FrameSource(file.schema_arrow.empty_table(), file.iter_batches, title)
    except (OSError, UnicodeError, pa.ArrowException) as error:  # damage that no checksum shows
        raise InvalidInputError(
            f"Expected a Parquet file that can be read, got {title}: {str(error).splitlines()[0]}"
        ) from None


class ExcelSource:
    """A sheet of a workbook as a `Source`; rows have the numbers that Excel shows."""

    def __init__(self, rows: Iterator[tuple[object, ...]], title: str) -> None:
        self._rows, self._title = rows, title
        self.names = ["" if name is None else spelled(str(name)) for name in next(rows, ())]
        if not any(self.names):
            raise InvalidInputError(f"Expected a header and rows, got nothing: {title} is empty.")

    def parts(self, columns: Sequence[str], problems: Problems) -> Iterator[Part]:
        numbered = enumerate(self._rows, 2)
        while block := [(n, row) for n, row in islice(numbered, _ROWS)]:
            filled = [(n, row) for n, row in block if any(cell is not None for cell in row)]
            if filled:
                cells = zip_longest(self.names, *(row for _, row in filled))
                values = {name: list(column) for name, *column in cells if name is not None}
                yield Part(values.__getitem__, np.array([n for n, _ in filled]))

    def at(self, place: int) -> str:
        return f"row {place} of {self._title}"


@contextmanager
def open_excel(path: str | Path, sheet: str | None) -> Iterator[ExcelSource]:
    """A sheet of an .xlsx file as a `Source`, closed at the end; the only one needs no name."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise MissingExtraError("openpyxl", "excel") from None
    title = quoted(str(path), 200)
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (OSError, ValueError, KeyError, BadZipFile, InvalidFileException) as error:
        raise InvalidInputError(
            f"Expected a workbook (.xlsx) that can be read, got {title}: {error}."
        ) from None
    try:
        names = book.sheetnames
        if sheet not in names if sheet is not None else len(names) != 1:
            raise InvalidInputError(
                f"Expected the name of a sheet of {title}, got {quoted(sheet)}; write "
                f'sheet = "NAME" in [table], one of {", ".join(map(quoted, names))}.'
            )
        with closing(load_workbook(path, read_only=True)) as written:
            values, formulas = (
                each[sheet or names[0]].iter_rows(values_only=True) for each in (book, written)
            )
            yield ExcelSource(_stored(values, formulas, title), title)
    finally:
        book.close()


def _stored(
    values: Iterator[tuple[object, ...]], formulas: Iterator[tuple[object, ...]], title: str
) -> Iterator[tuple[object, ...]]:
    """The values; a formula whose value was never computed would be read as an empty cell."""
    for number, (row, written) in enumerate(zip(values, formulas, strict=True), 1):
        for place, formula in enumerate(written if None in row else (), 1):
            if formula is not None and row[place - 1] is None:
                raise InvalidInputError(
                    f"Expected values, got the formula {quoted(str(formula))} without one in "
                    f"column {place}, row {number} of {title}; open it in a spreadsheet, put the "
                    f"values in the place of the formulas and save it."
                )
        yield row


class FrameSource:
    """A dictionary of columns, or any dataframe that narwhals or Arrow can read; rows from 0.

    ``slices(columns=...)`` are frames that hold the rows, one after the other, and ``title`` is
    where they stand, if not the frame itself.
    """

    def __init__(
        self, frame: object, slices: Callable[..., Iterable[Any]] | None = None, title: str = ""
    ) -> None:
        whole: Any = frame if isinstance(frame, Mapping) else _eager(frame)
        names = whole if isinstance(frame, Mapping) else whole.columns
        self._slices = slices or (lambda columns: [whole])
        self._title = f" of {title}" * bool(title)
        self.names = [name for name in names if isinstance(name, str)]

    def parts(self, columns: Sequence[str], problems: Problems) -> Iterator[Part]:
        first = 0
        for frame in self._slices(columns=list(dict.fromkeys(columns))):
            sizes = {name: len(_values(frame, name)) for name in columns}
            if len(set(sizes.values())) > 1:
                raise InvalidInputError(
                    "Expected columns of one length, got "
                    + ", ".join(f"{quoted(name)}: {size}" for name, size in sizes.items())
                    + "."
                )
            size = sizes[columns[0]]
            yield Part(partial(_list, frame), np.arange(first, first + size))
            first += size

    def at(self, place: int) -> str:
        return f"row {place} (the first is 0){self._title}"


def _values(frame: Any, name: str) -> Any:
    column = frame[name]
    if hasattr(column, "__len__") and not isinstance(column, str | bytes):
        return column
    raise InvalidInputError(
        f"Expected columns that are lists or arrays, got one of type {type(column).__name__}."
    )


def _list(frame: Any, name: str) -> Sequence[object]:
    """The column as plain values, made when it is asked for: one at a time is in memory."""
    column = _values(frame, name)
    narrow = _NARROW.match(str(getattr(column, "type", getattr(column, "dtype", ""))))
    for method in ("to_list", "tolist", "to_pylist"):
        if hasattr(column, method):
            values: list[object] = getattr(column, method)()
            if narrow:  # Python's own are wider, and do not show what was rounded
                kind = np.float16 if narrow[1] else np.float32
                values = [kind(cell) if isinstance(cell, float) else cell for cell in values]
            return values
    return list(column)


def _eager(frame: Any) -> Any:
    import narwhals as nw

    foreign = hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "collect")
    try:
        if foreign and not nw.dependencies.is_into_dataframe(frame):
            import pyarrow as pa

            frame = pa.table(frame)
        return nw.from_native(frame, eager_only=True)
    except ImportError:
        raise MissingExtraError("pyarrow", "tables") from None
    except nw.exceptions.DuplicateError as error:
        listed = ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
        raise InvalidInputError(
            f"Expected one column of each name, got {listed}; rename all but one."
        ) from None
    except (TypeError, ValueError) as error:
        if foreign:
            raise InvalidInputError(
                f"Expected a dataframe that Arrow can read, got {type(frame).__name__}: "
                f"{str(error).splitlines()[0]}"
            ) from None
        raise InvalidInputError(
            f"Expected a dataframe (pandas, polars, pyarrow, a dictionary of columns, or an object "
            f"with __arrow_c_stream__), got {type(frame).__name__}; name files by "
            f"their path, and collect() what is lazy first."
        ) from None
