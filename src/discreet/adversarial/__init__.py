"""Adversarial losses: two learners, the world they run in and the solvers of their updates."""
