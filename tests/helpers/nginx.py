"""The shipped nginx configuration on loopback, with a certificate of a private authority."""

import contextlib
import datetime
import ipaddress
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

SHIPPED = Path(__file__).parents[2] / "examples" / "service" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="Needs nginx, which is not installed here.")


def private_authority(folder, **changes):
    """ca.pem, certificate.pem and key.pem in a folder: an authority signs for 127.0.0.1."""
    folder.mkdir(exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, n)]) for n in ("CA", "host")]
    keys = [generate_private_key(SECP256R1()) for _ in names]
    address = ipaddress.ip_address(changes.get("address", "127.0.0.1"))
    certificates = [
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(names[0])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=changes.get("days", 2)))
        .add_extension(extension, critical=True)
        .sign(keys[0], hashes.SHA256())
        for name, key, extension in zip(
            names,
            keys,
            (
                x509.BasicConstraints(ca=True, path_length=0),
                x509.SubjectAlternativeName([x509.IPAddress(address)]),
            ),
            strict=True,
        )
    ]
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(certificates[0].public_bytes(pem))
    (folder / "certificate.pem").write_bytes(certificates[1].public_bytes(pem))
    text = keys[1].private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(text)
    return folder


@contextlib.contextmanager
def nginx(folder, devices, analyser, port):
    """nginx as it is shipped, but for addresses and paths; the address at which it serves."""
    private_authority(folder)
    text = SHIPPED.read_text()
    for was, now in (
        (r"^user .*;\n", ""),
        (r"/run/nginx\.pid", str(folder / "nginx.pid")),
        (r"127\.0\.0\.1:8700", f"127.0.0.1:{devices}"),
        (r"127\.0\.0\.1:8701", f"127.0.0.1:{analyser}"),
        (r"listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        (r"/etc/nginx/", f"{folder}/"),
        (
            r"^http \{\n",
            "http {\n"
            + "".join(
                f"    {name}_temp_path {folder}/{name};\n"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            ),
        ),
        (r"worker_processes auto", "worker_processes 1"),
    ):
        text, times = re.subn(was, now.replace("\\", r"\\"), text, flags=re.MULTILINE)
        assert times, was
    (folder / "nginx.conf").write_text(text)
    command = [NGINX, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    subprocess.run([*command, "-t", "-q"], check=True)
    process = subprocess.Popen([*command, "-g", "daemon off;"])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, "nginx did not start"
            time.sleep(0.05)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
