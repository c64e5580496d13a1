"""Write tests/service/golden anew: only when a format has changed, which a release may not do.

PYTHONPATH=tests python -m helpers.service_goldens certificate
PYTHONPATH=tests python -m helpers.service_goldens documents
"""

import json
import sqlite3
import sys
import tempfile
from pathlib import Path

from discreet.service.protocol import report
from helpers.service_analysers import start_study
from helpers.services import GOLDEN, SIGNER, announced, charter, manifest, new_store, submissions


def certificate():
    """Of the small charter."""
    with tempfile.TemporaryDirectory() as folder:
        of, _, _ = start_study(Path(folder))
    text = json.dumps(of.certificate, indent=1)
    (GOLDEN / "certificate.json").write_text(text + "\n")


def documents():
    """Charter, manifest, report and store, of the certificate that is there."""
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        tickets = [bytes([i]) * 32 for i in range(4)]
        store = new_store(path, of, tickets)
        store.announce(one)
        assert store.submit(submissions(one, tickets[:2])) == ["accepted"] * 2
        store.close()
        with sqlite3.connect(path) as database:
            pragmas = [
                f"PRAGMA {name} = {database.execute(f'PRAGMA {name}').fetchone()[0]};"
                for name in ("application_id", "user_version")
            ]
            text = "\n".join([*pragmas, *database.iterdump()])
    (GOLDEN / "store.sql").write_text(text + "\n")


if __name__ == "__main__":
    {"certificate": certificate, "documents": documents}[sys.argv[1]]()
