"""A page shown to a real browser, where there is one."""

import shutil
import subprocess

import pytest


def dump_dom(address, folder):
    """The page after its scripts ran; none of them may have complained.

    Args:
        address: of the page, ``file:`` or loopback.
        folder: an empty one for the browser's profile.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium on this machine; the page is not shown to a real browser")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout
