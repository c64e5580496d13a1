"""The one error of a device. Each reason has a name, the same in Python and in JavaScript."""


class DeviceError(ValueError):
    """Something was refused; nothing was encoded, sent or counted.

    Attributes:
        code: the reason, one of `CODES`.
    """

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code


CODES = (
    "unknownVersion",  # of a description or of bytes
    "unknownEncoder",
    "badDescription",
    "badEpisode",
    "badReport",  # messages that no encoder made
    "notBytes",
    "wrongLength",
    "otherBatch",  # bytes made for another description: another K, policy or mechanism
    "cellOutOfRange",
    "badPadding",
    "badRandomness",  # the source of bytes gave another number of them
    "tooLarge",  # a report of more than 16 MB
)
