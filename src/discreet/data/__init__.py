"""Rows of a table become episodes: `read_csv`, `read_parquet`, `read_frame`.

A *source* (`sources`) hands over columns as plain lists, part by part; `episodes` turns them into
numbers by the public names of a `Vocabulary` and puts the rows of each user in order. What does not
fit is refused with its row, column and value, or listed by a check (`problems`). Both show raw
data: they are for the operator whom a central study trusts with it, and belong in no log that
others read.
"""

from discreet.data.discretizer import Cuts, Discretizer
from discreet.data.layout import Absence, Layout, Padding
from discreet.data.problems import Problem, TableReport
from discreet.data.tables import TableFormat, read_csv, read_excel, read_frame, read_parquet
from discreet.data.vocabulary import Vocabulary

__all__ = [
    "Absence",
    "Cuts",
    "Discretizer",
    "Layout",
    "Padding",
    "Problem",
    "TableFormat",
    "TableReport",
    "Vocabulary",
    "read_csv",
    "read_excel",
    "read_frame",
    "read_parquet",
]
