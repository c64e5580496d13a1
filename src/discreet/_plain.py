"""Names of the types of plain values, for modules that load without NumPy."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Plain: TypeAlias = bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"] | None
"""What JSON and TOML can say."""
JsonObject: TypeAlias = Mapping[str, Any]
"""An object of JSON or TOML as it was read: what its values are, who reads them checks."""
