"""All roles on one machine with a simulated crowd: ``discreet service demo``.

- `worlds`: the shipped environments a demonstration can have, with names for people.
- `arrangement`: what one demonstration consists of, and its folder.
- `processes`: the roles as operating-system processes that may be killed and come back.
- `users`: the process in which simulated users live.
- `curves`: the regret of the real thing, and of simulated runs of the same learner.
- `picture`: both in one drawing, and the page at the end.
- `run`: all of it, from setting up to what was found.
"""
