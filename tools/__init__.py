"""Tables, studies and soaks behind the documentation, one command each.

All start in the same way, in the folder of the clone: ``python -m tools.NAME``, and ``--help`` says
what each prints and takes. Files with an underscore are no commands.
"""

import benchmarks  # noqa: F401  (before NumPy: one thread, where processes are the parallelism)
