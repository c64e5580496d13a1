"""A learner, an environment and a mechanism for discreet, from outside of it."""
