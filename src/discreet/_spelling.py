"""One spelling for what looks the same: names of users, states, actions and columns.

A text loses Unicode's format characters (category Cf), which nobody sees: byte-order marks,
zero-width spaces and joiners, marks of direction, soft hyphens. The rest is brought to the composed
form (NFC) and loses white space at both ends. Upper and lower case remain different.
"""

import re
import unicodedata

_FORMULA = re.compile("[=+@\uff1d\uff0b\uff0d\uff20-]")
"""How a formula begins, for spreadsheets of all countries: some take wide characters, too."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


def spelled(text: str) -> str:
    r"""The one spelling of ``text``.

    >>> spelled(" u0 "), spelled("\ufeffu0"), spelled("e\u0301") == "\u00e9"
    ('u0', 'u0', True)
    """
    visible = text
    if not text.isascii():  # ASCII has none, and is the usual case
        visible = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    name = unicodedata.normalize("NFC", visible).strip()
    return name  # noqa: RET504


def guarded(text: str) -> str:
    """``text`` as a file for spreadsheets holds it: with an apostrophe before what they would run.

    A spreadsheet computes a text that begins with =, +, - or @ when it opens the file. Numbers are
    left alone.

    >>> guarded("=1+1"), guarded("-5"), guarded("ill")
    ("'=1+1", '-5', 'ill')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """``text`` without the apostrophes that `guarded` and spreadsheets put before a formula.

    >>> unguarded("'=1+1"), unguarded("'tis"), unguarded("'-5")
    ('=1+1', "'tis", "'-5")
    """
    bare = text.lstrip("'")
    return bare if guarded(bare) != bare else text


def has_half_characters(text: str) -> bool:
    r"""Whether ``text`` holds a lone surrogate, which no encoding can write.

    >>> has_half_characters("u0"), has_half_characters("\ud800")
    (False, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def quoted(value: object, most: int = 60) -> str:
    r"""``value`` as an error shows it: printable, and not longer than a line.

    >>> quoted("ill"), quoted("\x1b[2J\ud800"), quoted("a" * 99, 8)
    ("'ill'", "'\\x1b[2J\\ud800'", "'aaaaaa...")
    """
    try:
        text = repr(value).encode("utf-8", "backslashreplace").decode()
    except ValueError:  # an integer of thousands of digits
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 1]}..."
