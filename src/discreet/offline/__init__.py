"""A better policy from logged episodes: one private release, pessimism relative to behaviour.

A room of its own beside `discreet.learners`: it asks nobody to play anything, so it is no learner
of the registry. (It is not called ``discreet.fit`` because that is the function.)
"""
