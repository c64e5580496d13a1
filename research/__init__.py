"""How constants were chosen and what was measured: see README.md."""

import os

# Processes are the parallelism: threads of a matrix library would only wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
