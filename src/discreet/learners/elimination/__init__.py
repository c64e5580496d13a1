"""Policy elimination in stages: the learner, its two explorers and what they plan with."""
