"""Environments: each a function that returns a TabularMDP."""
