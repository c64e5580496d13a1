"""What goes beside the wheel of a release: requirements pinned by hash, and a list of them (SBOM).

    python .ci/release.py dist/report.json dist

The report is pip's (`--dry-run --report`). The pins have the hashes of every file of a version, so
that they hold for every Python and platform. The package index is the one that pip asks
(``PIP_INDEX_URL``, or pip's default); no address is copied from it.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version
from pip._internal.models.index import PyPI

NAME = "discreet"
INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url)
FILE = re.compile(r'<a [^>]*href="(?:[^"#]*/)?([^"#/]+)#sha256=([0-9a-f]{64})"')
HEADER = """\
# What the service needs on Linux, by hash; for pip install --require-hashes.
# The hashes are those of all wheels and the source archive of each version.
"""


def pinned(packages: Sequence[dict[str, Any]]) -> str:
    """Lines for ``pip install --require-hashes``; our own wheel is installed without its own."""
    lines = []
    for one in packages:
        name, version = one["metadata"]["name"], one["metadata"]["version"]
        if name != NAME:
            known = published(name, version)
            if _digest(one) not in known:
                raise SystemExit(f"{name} {version}: pip took a file that the index does not have")
            lines.append(" \\\n    ".join([f"{name}=={version}", *known]) + "\n")
    return HEADER + "".join(sorted(lines, key=str.lower))


def published(name: str, version: str) -> list[str]:
    """The hash options of all files of one version, sorted."""
    address = f"{INDEX.rstrip('/')}/{canonicalize_name(name)}/"
    with urlopen(Request(address, headers={"Accept": "text/html"}), timeout=180) as answer:
        page = answer.read().decode("utf-8")
    wanted = Version(version)
    found = {digest for file, digest in FILE.findall(page) if version_of(file) == wanted}
    return [f"--hash=sha256:{digest}" for digest in sorted(found)]


def version_of(file: str) -> Version | None:
    """The version in the name of a wheel or a source archive.

    >>> version_of("psycopg_binary-3.3.8-cp313-cp313-win_amd64.whl")
    <Version('3.3.8')>
    """
    try:
        parse = parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename
        return parse(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None  # an egg, or an installer of old times


def _digest(package: dict[str, Any]) -> str:
    return f"--hash=sha256:{package['download_info']['archive_info']['hashes']['sha256']}"


def listed(packages: Sequence[dict[str, Any]]) -> str:
    """All of them as a CycloneDX document."""
    parts = {one["metadata"]["name"]: _component(one) for one in packages}
    own = parts.pop(NAME)
    bom = Bom(components=parts.values())
    bom.metadata.component = own
    bom.register_dependency(own, parts.values())
    return JsonV1Dot6(bom).output_as_string(indent=1)


def _component(package: dict[str, Any]) -> Component:
    about = package["metadata"]
    name, version = about["name"], about["version"]
    words = about.get("license_expression") or about.get("license") or ""
    whole = package["download_info"]["url"].endswith("-none-any.whl")  # one wheel for everybody
    digest = _digest(package).rpartition(":")[2] if whole else ""
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION if name == NAME else ComponentType.LIBRARY,
        purl=PackageURL("pypi", name=name.lower().replace("_", "-"), version=version),
        bom_ref=f"{name}@{version}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        licenses=[DisjunctiveLicense(name=words.splitlines()[0][:80])] if words else [],
    )


def main(report: Path, folder: Path) -> None:
    """Write both files."""
    packages = json.loads(report.read_text("utf-8"))["install"]
    (folder / "requirements.txt").write_text(pinned(packages), "utf-8")
    (folder / "sbom.json").write_text(listed(packages) + "\n", "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
