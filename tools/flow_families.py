"""The study of flow-ucb's constants: other values, and parts taken out, on families of problems.

    python -m tools.flow_families run constants.csv --problems chain rooms --runs 6 --seed 7000
    python -m tools.flow_families run constants.csv --learners flow-ucb flow-ucb:shrink=0.8
    python -m tools.flow_families table constants.csv

The families (`benchmarks.flow_families`) are for choosing; the tables of the documentation are of
other problems. A learner is flow-ucb, a part of it changed (`tools.flow_ablation`), or
``flow-ucb:NAME=VALUE``: a setting (confidence, shrink, ease), or a constant of its package in
capitals, unless it is compiled into a kernel. Rules that were tried and not kept are not in the
code any more, so their figures cannot be repeated with this.
"""

from benchmarks.flow_families import FAMILIES

from tools.flow_ablation import main

if __name__ == "__main__":
    main(__doc__, list(FAMILIES), [])
