"""Experiments: specs, runner, engines, results, plots, report."""
