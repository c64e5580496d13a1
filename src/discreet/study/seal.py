"""The key of a study's open sums: a small file of its own, beside the study or wherever you say.

A central stream keeps sums that are not released yet (`privacy.mechanisms.stored_tree`). They are
written down encrypted (AES-256-GCM, a fresh nonce each time), so that copies of the study's file,
its backups and what a crash leaves show no more than the releases do. The key is named after the
study, whatever its file is called.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet._files import write_atomically
from discreet.errors import MissingExtraError, StudyError

FOLDER = "DISCREET_KEYS"
"""The environment variable that names the folder of keys; the study's own by default."""
_NONCE = 12
_BESIDE = ContextVar("_BESIDE", default=False)


@contextlib.contextmanager
def keys_beside() -> Iterator[None]:
    """Throwaway studies: their keys stand beside them, and go when their folder goes."""
    token = _BESIDE.set(True)
    try:
        yield
    finally:
        _BESIDE.reset(token)


class StudySeal:
    """Seals with the key at ``path``, which is read when it is first needed."""

    def __init__(self, study: Path, name: str) -> None:
        named = None if _BESIDE.get() else os.environ.get(FOLDER)
        folder = Path(named or study.resolve().parent)
        self.path = folder / f"discreet-{name}.key"

    def create(self) -> None:
        """Make a key, readable by its owner only."""
        _cipher()  # before anything is written
        try:
            write_atomically(self.path, secrets.token_bytes(32), private=True)
        except OSError as error:
            raise StudyError(
                f"Cannot write the study's key {str(self.path)!r}: {error.strerror}; nothing was "
                f"begun. Choose a folder in which you may write, or set {FOLDER}."
            ) from None

    def remove(self) -> None:
        """For a study that could not begin."""
        with contextlib.suppress(OSError):
            self.path.unlink()

    def close(self, content: bytes) -> bytes:
        """Nonce and ciphertext."""
        nonce = secrets.token_bytes(_NONCE)
        sealed: bytes = self._key.encrypt(nonce, content, None)
        return nonce + sealed

    def open(self, sealed: bytes) -> bytes:
        """What was sealed."""
        from cryptography.exceptions import InvalidTag

        try:
            content: bytes = self._key.decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        except InvalidTag:
            raise StudyError(
                f"{str(self.path)!r} holds another key than the study was written with; nothing "
                f"was counted, put back the key that was made with it."
            ) from None
        return content

    @cached_property
    def _key(self) -> Any:
        try:
            return _cipher()(self.path.read_bytes())
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "a key has 32 bytes"
            raise StudyError(
                f"Cannot read the study's key {str(self.path)!r}: {reason}; without it the study "
                f"can be read and nobody can be counted. Put it back, or set {FOLDER} to the "
                f"folder that holds it."
            ) from None


def _cipher() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise MissingExtraError("cryptography", "secure") from None
    return AESGCM
