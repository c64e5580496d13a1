"""What goes beside the wheel of a release: requirements pinned by hash, and a list of them (SBOM).

    python .ci/release.py dist/report.json dist

The report is pip's (`--dry-run --report`); no address of a registry is copied from it.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

NAME = "discreet"


def pinned(packages: Sequence[dict[str, Any]]) -> str:
    """Lines for ``pip install --require-hashes``; our own wheel is installed without its own."""
    lines = [
        f"{one['metadata']['name']}=={one['metadata']['version']} \\\n"
        f"    --hash=sha256:{one['download_info']['archive_info']['hashes']['sha256']}\n"
        for one in packages
        if one["metadata"]["name"] != NAME
    ]
    return "".join(sorted(lines, key=str.lower))


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
    digest = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
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
