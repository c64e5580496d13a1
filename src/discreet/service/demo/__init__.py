"""All roles on one machine with a simulated crowd: ``discreet service demo``.

- `users`: the shipped worlds with names for people, and the process in which simulated users live.
- `run`: from setting up to what was found; roles are processes that may be killed and come back.
"""
