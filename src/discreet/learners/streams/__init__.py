"""Learners of the stream rhythm: a release after every episode, a new policy for the next."""
