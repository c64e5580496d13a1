"""Who is on the roster, for tests that go through all of it."""

from discreet.learners.registry import get_learner, learner_names


def learners_and_trusts(schedule):
    """Every learner of a schedule with the name of every trust model it can use."""
    specs = [get_learner(name) for name in learner_names()]
    return [
        (spec.name, trust) for spec in specs if spec.schedule == schedule for trust in spec.trusts
    ]
