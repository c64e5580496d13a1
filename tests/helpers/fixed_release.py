"""The release held fixed: nothing else that a door writes, prints, logs or raises knows the data.

A private release is the only thing that may depend on what people did; all that follows from it is
post-processing. So whatever a door does is done on copies of one place, each told other data, while
every mechanism gives back one release that was recorded before. What can then be seen (files byte
for byte with their names and sizes, what is printed, logged, warned of, returned or raised, and
which public facts the mechanism was asked with) must be the same. It is the idea of dp-recorder
(arXiv 2602.17454).

    def test_a_door(fixed_release):
        def prepare(place): ...             # puts into an empty folder what the door starts from
        def act(place, data): ...           # goes through the door; what it returns is compared
        fixed_release(prepare, act, [(data, neighbour), ...])

The door must be one that is taken in this process. Its place has the same path each time, and so
have the home and the temporary folder, which lie in it; files of raw data that ``act`` needs belong
into ``place.parent``, which is not compared.
"""

import contextlib
import copy
import dataclasses
import functools
import importlib
import io
import itertools
import logging
import pkgutil
import shutil
import tempfile
import warnings
from unittest import mock

import numpy as np
import pytest

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.base import BatchMechanism

_RELEASES = ("release", "release_reports")


class Held:
    """The batch releases of this process: recorded, and then given back whatever the data."""

    def __init__(self):
        self.kept, self.asked, self.fixed = [], [], False
        self._inside = False

    def over(self, method):
        """The same method of a mechanism, under watch; one release may be made of another."""

        @functools.wraps(method)
        def release(mechanism, data, *args, **options):
            if self._inside:
                return method(mechanism, data, *args, **options)
            number = len(self.asked)
            self.asked.append(_public(mechanism, data, args, options))
            if self.fixed:
                if number >= len(self.kept):
                    pytest.fail(f"There was a release more than the {len(self.kept)} of before.")
                return copy.deepcopy(self.kept[number])
            self._inside = True
            try:
                made = method(mechanism, data, *args, **options)
            finally:
                self._inside = False
            self.kept.append(copy.deepcopy(made))
            return made

        return release

    @contextlib.contextmanager
    def everywhere(self):
        """Every mechanism releases through here."""
        self.asked = []
        with contextlib.ExitStack() as stack:
            for kind, name in _methods():
                watched = self.over(vars(kind)[name])
                stack.enter_context(mock.patch.object(kind, name, watched))
            yield


@functools.cache
def _methods():
    for module in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
        importlib.import_module(module.name)
    kinds, found = [BatchMechanism], []
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found += [(kind, name) for name in _RELEASES if name in vars(kind)]
    return list(dict.fromkeys(found))


def _public(mechanism, data, args, options):
    """What a release may depend on besides what people did."""
    facts = dict(options)
    sampler = facts.pop("sampler", None)
    support = facts.pop("support", None)
    return [
        type(mechanism).__name__,
        _plain(mechanism),
        getattr(data, "users", None),
        args,
        sorted(facts.items()),
        None if sampler is None else sampler.secure,
        None if support is None else np.asarray(support).tobytes(),
    ]


class Lines(logging.Handler):
    """Collects what is logged while it is open, at every level."""

    def __init__(self):
        super().__init__(0)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")

    def __enter__(self):
        root = logging.getLogger()
        self._level = root.level
        root.addHandler(self)
        root.setLevel(0)
        return self

    def __exit__(self, *_):
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)


def files_of(folder):
    """Name -> bytes of everything in a folder, empty folders too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        found[f"file {path.relative_to(folder)}"] = path.read_bytes() if path.is_file() else None
    return found


def seen(place, prepare, act, data, held):
    """All that can be seen of going through a door once."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    prepare(place)
    (place / "tmp").mkdir(exist_ok=True)
    out, err, raised, returned = io.StringIO(), io.StringIO(), "", None
    with contextlib.ExitStack() as stack:
        for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            stack.enter_context(mock.patch.dict("os.environ", {name: str(place)}))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", str(place / "tmp")))
        stack.enter_context(held.everywhere())
        log = stack.enter_context(Lines())
        warned = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(contextlib.chdir(place))
        try:
            returned = act(place, data)
        except (Exception, SystemExit) as error:
            raised = f"{type(error).__name__}: {error}; caused by {error.__cause__!r}"
    return {
        "printed": out.getvalue(),
        "printed as errors": err.getvalue(),
        "logged": log.lines,
        "warned of": [str(warning.message) for warning in warned],
        "raised": raised,
        "returned": _plain(returned),
        "public facts of the releases": list(held.asked),
        **files_of(place),
    }


def _plain(value):
    """Something that is equal or not, all of it: arrays are bytes."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, bytes) else repr(value)


def differences(prepare, act, pairs, place, releases=True):
    """What two neighbours could be told apart by, with the release held fixed; and how often.

    A door that refuses everybody (``releases=False``) may release nothing at all.
    """
    held, found, compared = Held(), {}, 0
    pairs = iter(pairs)
    first = next(pairs)
    view = seen(place, prepare, act, first[0], held)
    if bool(held.kept) is not releases:
        said = f"{view['raised']}; {view['printed']}{view['printed as errors']}"
        pytest.fail(f"{len(held.kept)} releases through a mechanism: {said}")
    held.fixed = True
    for one, other in itertools.chain([first], pairs):
        views = [seen(place, prepare, act, data, held) for data in (one, other)]
        names = dict.fromkeys([*views[0], *views[1]])
        for name in names:
            if views[0].get(name) != views[1].get(name):
                found.setdefault(name, [view.get(name) for view in views])
        compared += 1
    return found, compared


def unchanged(prepare, act, pairs, place, least=60, releases=True):
    """Fail where two neighbours can be told apart; at least so many pairs must be compared."""
    found, compared = differences(prepare, act, pairs, place, releases)
    told = "\n".join(
        f"{name}: {one!s:.300} / {other!s:.300}" for name, (one, other) in found.items()
    )
    assert not found, f"With the release held fixed these depend on the data:\n{told}"
    assert compared >= least, f"Expected {least} pairs of neighbours or more, got {compared}."
