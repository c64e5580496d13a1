"""Write tests/service/golden anew: only when a format has changed, which a release may not do.

PYTHONPATH=tests python -m helpers.service_goldens certificate
PYTHONPATH=tests python -m helpers.service_goldens documents
"""

import json
import sys
import tempfile
from pathlib import Path

from discreet.service.protocol import report
from helpers.service_analysers import start_study
from helpers.services import GOLDEN, SIGNER, announced, charter, manifest


def certificate():
    """Of the small charter."""
    with tempfile.TemporaryDirectory() as folder:
        of, _, _ = start_study(Path(folder))
    text = json.dumps(of.certificate, indent=1)
    (GOLDEN / "certificate.json").write_text(text + "\n")


def documents():
    """Charter, manifest and report, of the certificate that is there."""
    of = charter()
    (GOLDEN / "charter.json").write_bytes(of.data)
    (GOLDEN / "manifest.txt").write_bytes(manifest(of).signed(SIGNER))
    one = announced(of)
    cells = [
        [(3 * place + j) % (group.cells + 1) for j in range(group.messages)]
        for place, group in enumerate(one.device.groups)
    ]
    sealed = report.seal(cells, one, bytes(range(32)))
    (GOLDEN / "report.hex").write_text(sealed.hex() + "\n")


if __name__ == "__main__":
    {"certificate": certificate, "documents": documents}[sys.argv[1]]()
