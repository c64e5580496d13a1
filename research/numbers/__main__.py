"""Write the files that are named, or all."""

import csv
import sys
from pathlib import Path

from research import numbers

DATA = Path(__file__).parents[2] / "docs" / "data"

for name in sys.argv[1:] or sorted(numbers.TABLES):
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(numbers.rows_of(name))
    print(DATA / name)
