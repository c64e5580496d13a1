"""Experiments: specifications, the runner, engines, results, plots, the report."""

from discreet._lazy import attach as _attach

_WHERE = {
    "Experiment": "discreet.lab.spec",
    "Results": "discreet.lab.results",
    "band": "discreet.lab.summary",
    "compare": "discreet.lab.summary",
    "experiment_names": "discreet.lab.spec",
    "figure": "discreet.lab.plots",
    "load": "discreet.lab.results",
    "load_experiment": "discreet.lab.spec",
    "run_experiment": "discreet.lab.runner",
    "summarise": "discreet.lab.summary",
    "write_figures": "discreet.lab.report",
    "write_report": "discreet.lab.report",
}

__getattr__, __dir__, __all__ = _attach(__name__, _WHERE)
