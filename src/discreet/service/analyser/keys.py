"""The analyser's secrets: one signing key, and one key per batch that is destroyed when counted.

Files in a folder of the analyser, readable by their owner only. A batch key that was destroyed is
overwritten and unlinked; what a disk or a backup keeps of it is beyond this program: keep batch
keys out of backups.
"""

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet._files import read_parsed, write_atomically
from discreet.errors import InvalidInputError

SIZE = 32


def make_signing_key(path: Path) -> Ed25519PrivateKey:
    """A new signing key in a file."""
    key = Ed25519PrivateKey.generate()
    write_atomically(path, key.private_bytes_raw().hex().encode() + b"\n", private=True)
    return key


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """The key that `make_signing_key` made."""
    return Ed25519PrivateKey.from_private_bytes(_read(path))


class BatchKeys:
    """One key per manifest, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)

    def make(self, number: int) -> X25519PrivateKey:
        """A fresh key for a manifest that nobody has seen yet."""
        key = X25519PrivateKey.generate()
        write_atomically(self._path(number), key.private_bytes_raw().hex().encode(), private=True)
        return key

    def read(self, number: int) -> bytes:
        """The private key of a manifest."""
        return _read(self._path(number))

    def destroy(self, number: int) -> None:
        """Overwrite and remove; harmless if that was done before."""
        path = self._path(number)
        try:
            with path.open("r+b") as file:
                file.write(b"0" * path.stat().st_size)
                file.flush()
                os.fsync(file.fileno())
            path.unlink()
        except FileNotFoundError:
            return

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.key"


def _read(path: Path) -> bytes:
    key = read_parsed(path, lambda data: bytes.fromhex(data.decode("ascii")), "the key")
    if len(key) != SIZE:
        raise InvalidInputError(f"Expected a key of {SIZE} bytes in {str(path)!r}.")
    return key
