"""One spelling for what looks the same: names of people, states, actions and columns.

`person` is the one function for names of people, wherever they come in: two spellings of one name
must not make two people of one. Labels of states, actions and columns go through `spelled`, which
leaves more as it was written: "CO\u2082" stays "CO\u2082". In both, upper and lower case differ.
"""

import hashlib
import re
import unicodedata
import warnings
from collections.abc import Iterable
from decimal import Decimal
from numbers import Integral

from discreet.errors import DiscreetWarning, InvalidInputError

_FORMULA = re.compile("[=+@\uff1d\uff0b\uff0d\uff20-]")
"""How a formula begins, for spreadsheets of all countries: some take wide characters, too."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_USUAL = re.compile("[!-~]+(?: [!-~]+)*")
"""Names that are their own spelling: most of them, so that a million people are quick."""
_DIGITS = re.compile(r"-?(0|[1-9][0-9]{0,19})")
_DECIMAL = re.compile(
    r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*|(\.[0-9]*)?[eE][+-][0-9]{1,3}|\.[0-9]+[eE][0-9]{1,3})?"
)
"""How programs write a number: 7.00, 1e+05, 1.0E5. Without point and sign, 12E3, it is a code."""
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ufff9-\ufffb]"
)
"""Unicode's Default_Ignorable_Code_Point (DerivedCoreProperties 14.0.0, 4,174 code points) without
the four Hangul fillers, and the three marks of interlinear annotation, which nobody sees either."""
_SPACE = re.compile("[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u2800]+")
"""Unicode's White_Space (PropList 14.0.0: tabs and line breaks, too), and the blank of braille."""
_REFUSED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u115f\u1160\ufffc\U00013430-\U00013446\U00016fe4\U0001d159]"
)
"""Control characters; Hangul fillers as NFKC leaves them, and the blanks, fillers and joiners of
hieroglyphs, Khitan script and music: nothing to some fonts, to others a blank, so that neither to
drop them nor to take them for white space is right; and the place of an object."""
_ALPHABETS = {"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "DESERET", "GREEK", "LATIN", "LISU"}
"""Scripts, as Unicode's names of letters begin, with letters that look like those of another."""


class RefusedNameError(InvalidInputError):
    """What names nobody; ``rule`` and ``remedy`` are for who knows its place in a table."""

    def __init__(self, value: object, rule: str, remedy: str) -> None:
        super().__init__(f"Expected {rule}, got {quoted(value)}; {remedy}")
        self.value, self.rule, self.remedy = value, rule, remedy

    def __reduce__(self) -> tuple[type, tuple[object, str, str]]:
        """Made again from what was given: errors of worker processes come as copies."""
        return type(self), (self.value, self.rule, self.remedy)


def person(given: object) -> str:
    r"""The one spelling of a person's name; whatever else is refused.

    Compatible letters are one (NFKC: fullwidth, ligatures), what nobody sees is dropped, white
    space of any kind and length is one space between words and none at the ends. Other control
    characters, fillers and lone surrogates are refused. A whole number is its digits, however a
    program wrote it, with any number of zeros: 7.0, 7.000e+00, 1e+05. But "007" is not 7, nor is
    "12E3" 12000: these are codes.

    >>> person(" ann\u00a0 lee\ufe0f"), person("\uff41nn\tlee"), person(7), person("7.0")
    ('ann lee', 'ann lee', '7', '7')
    """
    if isinstance(given, float) and given.is_integer() and abs(given) < 2**53:
        given = int(given)  # beyond that two people's numbers may have become one
    if isinstance(given, Integral) and not isinstance(given, bool) and abs(int(given)) < 2**64:
        return str(int(given))
    if not isinstance(given, str):
        rule, kind = "users named by text or by integers", type(given).__name__
        remedy = f"write the names as integers or as text where the table is made, not as {kind}."
        raise RefusedNameError(given, rule, remedy)
    name = given if _USUAL.fullmatch(given) else _settled(given)
    if not name:
        rule = "a name for every user"
        raise RefusedNameError(given, rule, "it is empty: fill it in, or leave the user out.")
    if has_half_characters(name):
        rule = "names of whole characters"
        raise RefusedNameError(given, rule, "it holds half of one (a lone surrogate).")
    if wrong := _REFUSED.search(name):
        rule = "names without control characters and fillers"
        written = next((c for c in given if _settled(c) == wrong[0]), wrong[0])
        raise RefusedNameError(given, rule, f"leave out U+{ord(written):04X}.")
    return name if name.isalnum() else _whole(name)


def _whole(name: str) -> str:
    """The digits of a whole number that a program wrote as a decimal; other names as they are."""
    if not _DECIMAL.fullmatch(name):
        return name
    value = Decimal(name)
    whole = value.to_integral_value()
    if value != whole:
        return name
    return format(whole, "f") if whole else "0"


def spellings(name: str) -> list[str]:
    """How else programs write this whole number; other names have one spelling.

    Each was once a person of its own: whoever was recorded then is looked up under all of them.

    >>> spellings("7")[:3], spellings("ann")
    (['7.', '7.0', '7.00'], [])
    """
    if not _DIGITS.fullmatch(name):
        return []
    sign, digits = ("-", name[1:]) if name[0] == "-" else ("", name)
    found = [f"{name}.{'0' * places}" for places in range(31)]
    exponent, after = len(digits) - 1, digits[1:].rstrip("0")
    # 1e+05, 1.0E5, and what C and numpy print with 6, 8 and 18 places: 1.000000e+05
    pointed = {f"{digits[0]}.{after or '0'}", *(f"{digits[0]}.{after:0<{n}}" for n in (6, 8, 18))}
    mantissas = sorted(pointed if after else {*pointed, digits[0]})
    found += [f"{sign}{m}{e}+{exponent:02}" for m in mantissas for e in "eE"]
    found += [f"{sign}{m}{e}{exponent}" for m in sorted(pointed) for e in "eE"]
    if name == "0":
        found += ["-0", "-0.0"]
    return found if sign else [*found, f"+{name}"]


def _settled(name: str) -> str:
    """Until nothing changes: what is dropped may have kept letters apart that compose."""
    while True:
        seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))
        folded = _SPACE.sub(" ", seen).strip(" ")
        if folded == name:
            return name
        name = folded


def digest_of(name: str, key: bytes) -> bytes:
    """What is kept of a person's name: nobody without the key can test one."""
    return hashlib.blake2b(name.encode(), key=key, digest_size=16).digest()


def lookalikes(names: Iterable[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Names that may be a second spelling of somebody, though they are taken as they are.

    Args:
        names: from `person`.

    Returns:
        Names that mix alphabets whose letters look alike; and pairs of names that differ in upper
        and lower case alone.
    """
    mixed, folded, twins = list[str](), dict[str, str](), list[tuple[str, str]]()
    for name in names:
        if not name.isascii() and len(_alphabets(name)) > 1:
            mixed.append(name)
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            twins.append((other, name))
    return mixed, twins


def warn_of_lookalikes(names: Iterable[str]) -> None:
    """Say which names may be a second spelling of somebody; see `lookalikes`."""
    mixed, twins = lookalikes(names)
    if mixed:
        warnings.warn(
            f"{_several(len(mixed), 'name mixes', 'names mix')} letters of several alphabets, "
            f"{quoted(mixed[0])} those of {alphabets(mixed[0])}: the same name in one alphabet "
            f"would be another person.",
            DiscreetWarning,
            stacklevel=3,
        )
    if twins:
        one, other = map(quoted, twins[0])
        warnings.warn(
            f"{_several(len(twins), 'name differs', 'names differ')} from another in upper and "
            f"lower case alone, {one} and {other}: they are taken for different people.",
            DiscreetWarning,
            stacklevel=3,
        )


def alphabets(name: str) -> str:
    """The alphabets of a name in words."""
    return " and ".join(sorted(word.capitalize() for word in _alphabets(name)))


def _alphabets(name: str) -> set[str]:
    letters = (unicodedata.name(letter, "?") for letter in name if letter.isalpha())
    return _ALPHABETS.intersection(text.split(maxsplit=1)[0] for text in letters)


def _several(count: int, one: str, many: str) -> str:
    return f"One {one}" if count == 1 else f"{count:,} {many}"


def spelled(text: str) -> str:
    r"""The one spelling of a label: composed, without format characters (Cf) and outer space.

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
