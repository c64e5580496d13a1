"""A page shown to a real browser, where there is one."""

import shutil
import subprocess

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Nobody is asked anything, and nothing but the page is loaded."""


def browser():
    """The path of Chromium; the test is skipped where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium on this machine; the page is not shown to a real browser")
    return program


def dump_dom(address, folder):
    """The page after its scripts ran; none of them may have complained.

    Args:
        address: of the page, ``file:`` or loopback.
        folder: an empty one for the browser's profile.
    """
    done = subprocess.run(
        [
            browser(),
            *FLAGS,
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout
