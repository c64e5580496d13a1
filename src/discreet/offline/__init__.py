"""From logged episodes, by one private release: a better policy, and what a given one is worth.

A room of its own beside `discreet.learners`: it asks nobody to play anything, so it is no learner
of the registry. (It is not called ``discreet.fit`` because that is the function.)
"""
