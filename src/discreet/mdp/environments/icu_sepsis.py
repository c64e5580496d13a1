"""ICU-Sepsis: the realistic stress test, built by its authors from intensive-care records."""

import contextlib
import io
import warnings

from discreet.errors import MissingExtraError
from discreet.mdp.environments._relabel import relabel_actions
from discreet.mdp.tabular import TabularMDP


def ICUSepsis(*, horizon: int = 20, relabel: int | None = None) -> TabularMDP:
    """Treat sepsis in intensive care: 716 states, 25 actions (extra `health`).

    Choudhary, Gupta and Thomas (2024), "ICU-Sepsis: A Benchmark MDP Built from Real Medical Data".
    An episode pays 1 if the patient survives within ``horizon`` steps of four hours. Actions that
    the records do not support in a state do what the authors' environment does with them: a random
    admissible action is taken (`discreet.mdp.admissible_actions` tells which are).

    Args:
        horizon: steps per episode; the original has no fixed length.
        relabel: a seed to rename the actions at random in each state.
    """
    _import_quietly()
    from discreet.mdp.gymnasium_bridge import from_gymnasium

    mdp = from_gymnasium("Sepsis/ICU-Sepsis-v2", horizon, name="ICU-Sepsis")
    return relabel_actions(mdp, relabel)


def _import_quietly() -> None:
    """Importing the package registers its ids, and prints a notice about its old dependency."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            import icu_sepsis  # noqa: F401
        except ImportError:
            raise MissingExtraError("icu-sepsis", "health") from None
