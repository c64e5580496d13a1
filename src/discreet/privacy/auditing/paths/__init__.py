"""Every public way from users' data to what is published, as a function of the randomness alone.

A `Path` is one data set's run and the runs of its neighbours. What is audited knows nothing else.
"""
