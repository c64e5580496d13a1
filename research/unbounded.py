"""What a stream of unknown length costs: variances against streams that know their length.

    python -m research.unbounded [--most 24]

Against the plain square root at its last release (the comparison of Jacobsen and Fawaz 2025), and
against discreet's own `toeplitz` at its worst time and at its last release. The longest takes about
a minute. Writes research/tables/unbounded.csv (docs/understand/mechanisms/toeplitz.md).
"""

import csv
import math
from pathlib import Path

import numpy as np
from scipy import special

from discreet.privacy.mechanisms import toeplitz, unbounded
from research import parser


def plain_square_root(length: int) -> float:
    """Variance of its last release, for encoded noise of one; exact up to 2^20 terms."""
    j = np.arange(min(length, 1 << 20))
    c = np.exp(special.gammaln(j + 0.5) - special.gammaln(j + 1) - special.gammaln(0.5))
    return (float(np.sum(c**2)) + math.log(length / j.size) / math.pi) ** 2


def main() -> None:
    """A row per length."""
    command = parser("research.unbounded", __doc__)
    command.add_argument("--most", type=int, default=24, help="binary logarithm of the longest")
    lengths = [1 << k for k in (10, 16, 20, 24) if k <= command.parse_args().most]
    here = unbounded.factors(lengths[-1]).variances_at(np.array(lengths))
    path = Path(__file__).parent / "tables" / "unbounded.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["releases", "plain square root", "toeplitz, worst", "toeplitz, last"])
        for length, variance in zip(lengths, here.tolist(), strict=True):
            known = toeplitz.factors(length)
            last = float(known.variances_at(np.array([length]))[0])
            others = (plain_square_root(length), known.worst**2, last)
            row = [length, *(round(variance / other, 3) for other in others)]
            rows.writerow(row)
            print(*row, sep="\t", flush=True)


if __name__ == "__main__":
    main()
