"""Stores of both kinds, and a private database server."""

import importlib.util

if any(importlib.util.find_spec(n) is None for n in ("cryptography", "starlette", "httpx")):
    collect_ignore_glob = ["*"]  # the extra `service` is not installed: nothing here can run
