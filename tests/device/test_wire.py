"""The device alone, its bytes one by one, golden ones, and every malformed one refused."""

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.device import ByteDraws, DeviceError, load
from discreet.device.wire import HEADER, pack_bits, unpack_bits
from helpers.devices import ALL, FOLLOWS, LEAVES, Bytes, histogram, vector

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
        "histogram True",
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


GOLDEN = json.loads((Path(__file__).parent / "golden-reports.json").read_text("ascii"))


def report(name, seed=0):
    device = load(ALL[name])
    return device, device.to_bytes(device.encode(FOLLOWS, ByteDraws(Bytes(seed))))


def code(device, data):
    with pytest.raises(DeviceError) as caught:
        device.from_bytes(data)
    return caught.value.code


@pytest.mark.parametrize("name", ALL)
def test_the_header_is_as_documented(name):
    device, data = report(name)
    assert data[:4] == b"dscr" and data[4] == 1
    kinds = {"histogram": 1, "split": 4}
    assert data[5] == kinds[name]
    assert data[6:38] == device.batch
    assert len(data) == HEADER + device.body == 38 + device.body


def test_a_cell_is_four_bytes_in_the_order_of_the_groups():
    device = load(histogram())
    sent = device.encode(FOLLOWS)
    data = device.to_bytes(sent)[38:]
    cells = [int.from_bytes(data[i : i + 4]) for i in range(0, len(data), 4)]
    assert cells == [cell for cells in sent for cell in cells]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", range(5))
def test_bytes_go_there_and_back(name, seed):
    device, data = report(name, seed)
    assert device.to_bytes(device.from_bytes(data)) == data
    assert device.from_bytes(bytearray(data)) == device.from_bytes(memoryview(data))


@pytest.mark.parametrize("name", ALL)
def test_all_reports_of_a_batch_have_one_length(name):
    device = load(ALL[name])
    episodes = [FOLLOWS, FOLLOWS | {"actions": [1, 0, 1]}]
    sent = {len(device.to_bytes(device.encode(e))) for e in episodes for _ in range(20)}
    assert sent == {HEADER + device.body}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["description"]["encoder"])
def test_golden_bytes_of_version_1_are_made_and_read_for_ever(golden):
    """Never change these: reports of this version may be on their way."""
    device = load(golden["description"])
    given = bytes.fromhex(golden["random"])
    assert vector(golden["description"], golden["episode"], given) == golden
    data = bytes.fromhex(golden["bytes"])
    assert device.from_bytes(data) == golden["report"]
    assert device.to_bytes(golden["report"]) == data


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda data: None, "notBytes"),
        (lambda data: data.hex(), "notBytes"),
        (list, "notBytes"),
        (lambda data: b"", "wrongLength"),
        (lambda data: data[:37], "wrongLength"),
        (lambda data: data[:-1], "wrongLength"),
        (lambda data: data + b"\0", "wrongLength"),
        (lambda data: data + data, "wrongLength"),
        (lambda data: b"DSCR" + data[4:], "unknownVersion"),
        (lambda data: data[:4] + b"\2" + data[5:], "unknownVersion"),
        (lambda data: data[:4] + b"\0" + data[5:], "unknownVersion"),
        (lambda data: data[:5] + b"\5" + data[6:], "otherBatch"),
        (lambda data: data[:6] + bytes(32) + data[38:], "otherBatch"),
    ],
)
def test_malformed_bytes_are_refused_by_name(name, spoil, expected):
    device, data = report(name)
    assert code(device, spoil(data)) == expected


def test_noise_of_another_batch_is_refused():
    """More users need fewer noise cells: a report of that batch does not pass for one of this."""
    device, data = report("histogram")
    other = load(histogram(users=400))
    assert other.messages != device.messages
    assert code(other, data) == "otherBatch"
    assert code(load(histogram(users=2001)), data) == "otherBatch"
    longer = other.to_bytes(other.encode(FOLLOWS))
    assert code(device, data[:38] + longer[38:]) == "wrongLength"


def test_cells_out_of_range_are_refused():
    device, data = report("histogram")
    first = device.groups[0]
    fine = data[:38] + first.cells.to_bytes(4) + data[42:]
    assert device.from_bytes(fine)[0][0] == first.cells  # a dummy
    for cell in (first.cells + 1, 2**32 - 1):
        assert code(device, data[:38] + cell.to_bytes(4) + data[42:]) == "cellOutOfRange"


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("junk", [None, [], [[]], [[0]], [[True]], [["0"]], "0", [[0.0], [0]], [0]])
def test_messages_that_no_device_made_are_not_packed(name, junk):
    with pytest.raises(DeviceError) as caught:
        load(ALL[name]).to_bytes(junk)
    assert caught.value.code == "badReport"


@given(st.lists(st.integers(0, 1), max_size=40), st.integers(0, 2))
def test_bits_are_packed_eight_to_a_byte(bits, spare):
    length = (len(bits) + 7) // 8 + spare
    data = pack_bits(bits, length)
    assert len(data) == length and unpack_bits(data, len(bits)) == bits
    for i, bit in enumerate(bits):
        assert data[i // 8] >> (7 - i % 8) & 1 == bit
