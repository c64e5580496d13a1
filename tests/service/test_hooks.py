"""Nothing happens at a commit unless a test wants it."""

from discreet.service.configs import nothing_happens


def test_a_deployment_does_nothing_at_a_commit():
    assert nothing_happens("submit.before") is None
