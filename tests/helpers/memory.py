"""A search of another process's memory."""

from pathlib import Path

import pytest

_CHUNK = 1 << 22


def regions_of(process):
    """First and last address of everything that a process can write to."""
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        span, rights, *_ = line.split()
        if rights.startswith("rw"):
            yield tuple(int(end, 16) for end in span.split("-"))


def held_by(process, needles):
    """Those of these bytes that stand somewhere in a process's memory; skips if nobody may look."""
    found = set()
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            for part in _parts(memory, process, max(map(len, needles))):
                found |= {one for one in needles if one in part}
    except PermissionError:
        pytest.skip("This system does not let anybody look into another process's memory.")
    return found


def _parts(memory, process, overlap):
    """All that can be read, in parts that overlap."""
    for first, last in regions_of(process):
        at, tail = first, b""
        while at < last:
            try:
                memory.seek(at)
                part = memory.read(min(_CHUNK, last - at))
            except PermissionError:
                raise
            except OSError:
                break  # a region that has just gone
            if not part:
                break
            yield tail + part
            tail, at = part[-overlap:], at + len(part)
