"""CSV files, read as a stream with the standard library; refusals name the line."""

import codecs
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from discreet._spelling import quoted, spelled
from discreet.errors import InvalidInputError
from discreet.mdp.onramp.sources import Part

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
