"""Parquet files, read part by part with pyarrow (extra `tables`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet._spelling import quoted
from discreet.errors import InvalidInputError, MissingExtraError
from discreet.mdp.onramp.sources import Part

if TYPE_CHECKING:
    import pyarrow.parquet as pq


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
def opened(path: str | Path) -> Iterator[ParquetSource]:
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
