"""Keys on the disk: private, and destroyed for good."""

import stat

import pytest

from discreet.errors import InvalidInputError
from discreet.service.analyser.opening import BatchKeys, make_signing_key, read_signing_key


def test_a_signing_key_is_kept_in_private(tmp_path):
    key = make_signing_key(tmp_path / "k")
    assert read_signing_key(tmp_path / "k").private_bytes_raw() == key.private_bytes_raw()
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "00", "zz" * 32])
def test_what_is_no_key_is_refused(tmp_path, text):
    (tmp_path / "k").write_text(text)
    with pytest.raises(InvalidInputError, match="key"):
        read_signing_key(tmp_path / "k")
    with pytest.raises(InvalidInputError, match="Cannot read the key"):
        read_signing_key(tmp_path / "none")


def test_batch_keys_differ_and_go(tmp_path):
    keys = BatchKeys(tmp_path / "keys")
    one, two = keys.make(0), keys.make(1)
    assert one.private_bytes_raw() != two.private_bytes_raw() == keys.read(1)
    link = tmp_path / "link"
    link.hardlink_to(tmp_path / "keys" / "000000.key")  # to see what is left of the file
    keys.destroy(0)
    keys.destroy(0)
    assert set(link.read_bytes()) == {ord("0")}
    assert [p.name for p in (tmp_path / "keys").iterdir()] == ["000001.key"]
    with pytest.raises(InvalidInputError):
        keys.read(0)


def test_batch_keys_are_their_owner_s_alone(tmp_path):
    keys = BatchKeys(tmp_path / "keys")
    keys.make(0)
    paths = (tmp_path / "keys", tmp_path / "keys" / "000000.key")
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, 0o600]
