"""flow-ucb: optimism on batches, with everything that costs no privacy.

Every constant says where it comes from: *inherited* from the rule set that was the start of this
learner (measured there, on other problems than are reported); *measured* on families of problems,
with figures in research/ (``python -m research.regret`` runs them); or *not varied*: chosen once,
other values were not tried.
"""
