"""Every error that discreet raises on purpose: one flat tree, so that a caller can catch one name.

Messages name the value, the rule and the remedy.
"""

from collections.abc import Iterable, Sequence

_NUMERICAL = ("numpy", "scipy", "numba")  # a mistake shows there, and is made elsewhere

__all__ = [
    "BudgetError",
    "CalibrationError",
    "DiscreetError",
    "DiscreetWarning",
    "InvalidInputError",
    "MissingExtraError",
    "SolverError",
    "StudyError",
    "UnknownNameError",
    "UnsupportedError",
]


class DiscreetError(Exception):
    """Base of all errors raised on purpose."""


class DiscreetWarning(UserWarning):
    """Something works but does not mean what one may think (printed constants, for instance)."""


class InvalidInputError(DiscreetError, ValueError):
    """A value breaks a rule; the message says which value, which rule and what to do."""


class UnsupportedError(DiscreetError, ValueError):
    """A valid request that this combination of parts cannot serve."""


class CalibrationError(DiscreetError, ValueError):
    """No noise level reaches the requested guarantee."""


class BudgetError(DiscreetError):
    """A request would spend more privacy than remains; nothing was released."""


class SolverError(DiscreetError, RuntimeError):
    """A numerical solver missed its certificate."""


class StudyError(DiscreetError):
    """A real-data study refuses a step; nothing was counted."""


class MissingExtraError(DiscreetError, ImportError):
    """A dependency is not installed: an optional one of an extra, or one of the core."""

    def __init__(self, package: str, extra: str = "") -> None:
        self._given = package, extra
        where, wanted = f"the extra {extra!r}", f"'discreet[{extra}]'"
        if not extra:
            where, wanted = "the core, and this installation is broken", "discreet"
        super().__init__(
            f"{package!r} is not installed; it belongs to {where}: pip install {wanted}."
        )

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Made again from what was given: errors of worker processes come as copies."""
        return type(self), self._given


class UnknownNameError(DiscreetError, KeyError):
    """A name is not in a registry; near misses are suggested, or what it is the ``begin`` of."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, begin: Sequence[str] = ()
    ) -> None:
        import difflib  # on the way to an error only

        names = sorted(known)
        folded, begun = {n.lower(): n for n in reversed(names)}, name.lower()
        close = difflib.get_close_matches(begun, folded, n=1, cutoff=0.7)  # three letters in ten
        longer = [n for n in folded if len(begun) > 2 and n.startswith(begun)]
        found = close or (longer if len(longer) == 1 else [])
        near = folded[found[0]] if found else None
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(names)}."
        if begin:
            hint = f"did you mean {' or '.join(map(repr, begin))}?"
        self.message = f"Unknown {kind} {name!r}; {hint}"
        self._given = kind, name, tuple(names)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[type, tuple[str, str, tuple[str, ...]], dict[str, str]]:
        """Made again from what was given: errors of worker processes come as copies."""
        return type(self), self._given, {"message": self.message}

    def __str__(self) -> str:
        """The plain sentence (KeyError would quote it)."""
        return self.message


def sentence_of(error: BaseException) -> str:
    """One sentence on what went wrong; of a mistake in code also where, in whose file.

    >>> sentence_of(InvalidInputError("Expected users > 0, got 0."))
    'Expected users > 0, got 0.'
    """
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, DiscreetError) or not frames:
        return str(error)
    own = [f for f in frames if not any(f"/{name}/" in f.filename for name in _NUMERICAL)]
    place = (own or frames)[-1]
    file = place.filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{type(error).__name__}: {error} (in {place.name}, {file}, line {place.lineno})"
