"""Names that a shell completes."""

from collections.abc import Callable

Names = Callable[[str], list[str]]


def experiments(incomplete: str) -> list[str]:
    """Shipped experiments that begin so."""
    from discreet.lab.spec import experiment_names

    return _beginning(incomplete, experiment_names())


def learners(incomplete: str) -> list[str]:
    """Learners that begin so."""
    from discreet.learners.registry import learner_names

    return _beginning(incomplete, learner_names())


def environments(incomplete: str) -> list[str]:
    """Environments that begin so."""
    from discreet.mdp.environments.registry import environment_names

    return _beginning(incomplete, environment_names(optional=True))


def trusts(incomplete: str) -> list[str]:
    """Trust models that begin so."""
    from discreet.privacy.trust import TRUST_MODELS

    return _beginning(incomplete, list(TRUST_MODELS))


def papers(incomplete: str) -> list[str]:
    """Presets of papers that begin so."""
    from discreet.papers.presets import preset_names

    return _beginning(incomplete, preset_names())


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
