"""Rows of a table become episodes: `read_table`.

A *source* (`sources`) hands over columns as plain lists, part by part; `episodes` turns them into
numbers by the public names of a `Vocabulary` and puts the rows of each user in order. What does not
fit is refused with its row, column and value, or listed by a check (`problems`). Both show raw
data: they are for the operator whom a central study trusts with it, and belong in no log that
others read.
"""

from discreet.data.discretizer import Cuts, Discretizer
from discreet.data.layout import Absence, Layout, Padding, TableFormat
from discreet.data.problems import Finding, TableProblems
from discreet.data.tables import check_table, read_table
from discreet.data.vocabulary import Vocabulary

__all__ = [
    "Absence",
    "Cuts",
    "Discretizer",
    "Finding",
    "Layout",
    "Padding",
    "TableFormat",
    "TableProblems",
    "Vocabulary",
    "check_table",
    "read_table",
]
