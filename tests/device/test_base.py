"""The device alone: no NumPy, nothing else of discreet, no data kept."""

import copy
import subprocess
import sys

import pytest

from discreet.device import ByteDraws, load
from helpers.devices import ALL, FOLLOWS, LEAVES, Bytes

pytestmark = pytest.mark.core

ALONE = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | {"discreet"}:
            raise ImportError(f"{name} is not on this device")

sys.meta_path.insert(0, Blocker())
import discreet.device

try:
    import numpy
except ImportError:
    print("no NumPy")
for description in DESCRIPTIONS:
    device = discreet.device.load(description)
    data = device.to_bytes(device.encode(EPISODE))
    assert device.to_bytes(device.from_bytes(data)) == data
    print(description["encoder"], len(data) == 38 + device.body)
ours = [name for name in sys.modules if name.startswith("discreet.")]
print(sorted(name for name in ours if ".device" not in name))
"""


def test_a_device_needs_the_standard_library_alone():
    program = f"DESCRIPTIONS, EPISODE = {list(ALL.values())!r}, {FOLLOWS!r}\n" + ALONE
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "no NumPy",
        "classes True",
        "one-step True",
        "randomized-response True",
        "split True",
        "['discreet._lazy']",  # what `import discreet` itself takes
    ]


@pytest.mark.parametrize("name", ALL)
def test_who_changes_a_description_afterwards_changes_no_device(name):
    """Else the bytes of a report would name another batch than the one it was made for."""
    description = copy.deepcopy(ALL[name])
    device, batch = load(description), load(ALL[name]).batch
    for known in (description, device.to_dict()):
        known["policy"][0][0] = 1
        known["horizon"] = 1
        known.get("lambda", known.get("flip"))[0] = 1
    assert device.batch == batch and device.to_dict() == ALL[name]


@pytest.mark.parametrize("name", ALL)
def test_a_device_keeps_nothing_of_an_episode(name):
    device = load(ALL[name])
    before = repr(vars(device))
    one = device.encode(FOLLOWS, ByteDraws(Bytes(1)))
    device.encode(LEAVES, ByteDraws(Bytes(2)))
    assert repr(vars(device)) == before
    assert device.encode(FOLLOWS, ByteDraws(Bytes(1))) == one
    assert device.to_dict() == ALL[name]
    device.to_dict()["version"] = 9
    assert device.to_dict() == ALL[name]
