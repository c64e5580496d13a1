"""Simulated users of a stream, seen only through its release.

What a user does, what her report adds, which noise it carries and what becomes public is decided
here: a learner is handed the public counters and nothing else.
"""
