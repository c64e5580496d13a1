"""What is shipped to run the service: image, compose file, units, the lists of a release."""

import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from discreet.service import configs

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "examples" / "service"
ROLES = ("shuffler", "analyser")
UNITS = (*ROLES, "analyser@")
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="Needs systemd-analyze, which is not here."
)


@pytest.mark.parametrize("role", ROLES)
def test_units_stop_after_some_failures_and_keep_compiled_code(role):
    """With a RestartSec of seconds the default limit of starts is never reached."""
    unit = (SHIPPED / f"discreet-{role}.service").read_text()
    (burst,) = re.findall(r"^StartLimitBurst=(\d+)$", unit, re.MULTILINE)
    (span,) = re.findall(r"^StartLimitIntervalSec=(\d+)$", unit, re.MULTILINE)
    (pause,) = re.findall(r"^RestartSec=(\d+)$", unit, re.MULTILINE)
    assert int(burst) * (int(pause) + 30) < int(span)  # a start that fails takes some seconds
    assert unit.index("StartLimit") < unit.index("[Service]")
    assert "ProtectSystem=strict" in unit and f"CacheDirectory=discreet-{role}\n" in unit
    assert f"Environment=NUMBA_CACHE_DIR=%C/discreet-{role}\n" in unit


@needs_systemd
@pytest.mark.parametrize("role", UNITS)
def test_systemd_finds_nothing_wrong_with_a_unit_and_little_exposed(role, tmp_path):
    unit = (SHIPPED / f"discreet-{role}.service").read_text()
    path = tmp_path / f"discreet-{role.replace('@', '@other')}.service"
    path.write_text(unit.replace("/opt/discreet/bin/discreet", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=30"]
    done = subprocess.run([*words, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]


def test_an_analyser_has_a_folder_for_each_name():
    unit = (SHIPPED / "discreet-analyser@.service").read_text()
    assert "--config /var/lib/discreet-analyser/%i/analyser/analyser.toml\n" in unit


def test_ports_are_the_same_everywhere(tmp_path):
    fields = configs.places("https://shuffler.example.org")
    nginx, compose = (SHIPPED / "nginx.conf").read_text(), (SHIPPED / "compose.yaml").read_text()
    docker = (SHIPPED / "Dockerfile").read_text()
    assert re.findall(r"server (127\S+);", nginx) == [
        f"127.0.0.1:{fields['port']}",
        fields["private"],
    ]
    assert f"EXPOSE {fields['port']} {fields['private'].rpartition(':')[2]}\n" in docker
    services = yaml.safe_load(compose)["services"]
    assert "HEALTHCHECK" not in docker  # an analyser has no such port
    assert f"http://{fields['private']}/readyz" in str(services["shuffler"]["healthcheck"])
    assert services["tls"]["network_mode"] == "service:shuffler"
    assert services["shuffler"]["ports"] == ["443:443"] and "listen 443 ssl;" in nginx


def test_the_analysers_requests_have_places_of_their_own_for_every_study():
    own, operators = re.findall(r"location ~ (\S+) \{", (SHIPPED / "nginx.conf").read_text())
    for start in ("", f"/studies/{'0f' * 32}"):
        assert re.match(operators, f"{start}/livez") and re.match(operators, f"{start}/readyz")
        assert re.match(own, f"{start}/v1/batches/3/done")
        assert not re.match(own, f"{start}/v1/reports")


def test_the_image_is_pinned_small_and_powerless():
    docker = (SHIPPED / "Dockerfile").read_text()
    services = yaml.safe_load((SHIPPED / "compose.yaml").read_text())["services"]
    assert docker.count("\nFROM ") == 2 and "\nARG PYTHON\n" in docker
    assert "--require-hashes --only-binary :all:" in docker and "--no-deps --no-index" in docker
    user = docker.rindex("\nUSER 10001:10001\n")
    assert "RUN" not in docker[user:]
    (place,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", docker)
    assert services["shuffler"]["tmpfs"] == [f"{place}:uid=10001"]
    for name in ("shuffler", "tls"):
        assert services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"]
    for one in services.values():
        assert re.fullmatch(r"\$\{[A-Z]+:\?.* by digest\}", one["image"])


def release():
    """The script of the release, as a module."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(name, version, digest):
    wheel = f"https://registry.example/{name}-{version}-py3-none-any.whl"
    info = {"url": wheel, "archive_info": {"hashes": {"sha256": digest}}}
    metadata = {"name": name, "version": version, "license": "MIT\nPermission is ..."}
    return {"metadata": metadata, "download_info": info}


def index_of(**digests):
    """An index that has for every package a wheel, a source archive and an older version."""

    def open_page(request, timeout):
        name = request.full_url.rstrip("/").rpartition("/")[2].replace("-", "_")
        version, digest = digests[name]
        files = {
            f"{name}-{version}-py3-none-any.whl": digest,
            f"{name}-{version}.tar.gz": "12" * 32,
            f"{name}-0.0.1.tar.gz": "34" * 32,
            f"{name}-{version}.win32.exe": "56" * 32,
        }
        links = (
            f'<a href="https://registry.example/packages/{file}#sha256={hexes}">{file}</a>'
            for file, hexes in files.items()
        )
        return io.BytesIO("<br/>\n".join(links).encode())

    return open_page


def test_a_release_lists_what_it_needs_with_hashes_and_without_addresses(tmp_path, monkeypatch):
    found = [package("zlib_x", "1.0", "ab" * 32), package("Abc", "2.1", "cd" * 32)]
    own = package("discreet", "0.1", "ef" * 32)
    own["download_info"] = {"url": "file:///x", "dir_info": {}}
    (tmp_path / "report.json").write_text(json.dumps({"install": [*found, own]}))
    module = release()
    monkeypatch.setattr(
        module, "urlopen", index_of(zlib_x=("1.0", "ab" * 32), abc=("2.1", "cd" * 32))
    )
    module.main(tmp_path / "report.json", tmp_path)
    lines = (tmp_path / "requirements.txt").read_text()
    assert lines.startswith(module.HEADER + "Abc==2.1 \\\n    --hash=sha256:1212")
    assert re.findall(r"sha256:(..)", lines) == ["12", "cd", "12", "ab"]
    assert "discreet" not in lines
    bom = json.loads((tmp_path / "sbom.json").read_text())
    assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["name"] == "discreet"
    parts = {one["name"]: one for one in bom["components"]}
    assert parts["Abc"]["hashes"] == [{"alg": "SHA-256", "content": "cd" * 32}]
    assert parts["zlib_x"]["purl"] == "pkg:pypi/zlib-x@1.0"
    assert "registry.example" not in lines + json.dumps(bom)
    monkeypatch.setattr(
        module, "urlopen", index_of(zlib_x=("1.0", "99" * 32), abc=("2.1", "cd" * 32))
    )
    with pytest.raises(SystemExit, match=r"zlib_x 1\.0: pip took a file"):
        module.main(tmp_path / "report.json", tmp_path)


def docker_answers():
    docker = shutil.which("docker")
    return docker and subprocess.run([docker, "info"], capture_output=True).returncode == 0


def test_the_steps_of_the_image_make_a_program(tmp_path, long_run):
    """In an environment of its own, not in a root of its own: that needs a daemon."""
    if not long_run:
        pytest.skip("Downloads all packages: part of `make soak`.")
    subprocess.run(["make", "-C", str(ROOT), "release"], check=True)
    dist, made = ROOT / "dist", tmp_path / "discreet"
    for step in re.findall(
        r"^RUN (python .*|/opt/.*)$", (SHIPPED / "Dockerfile").read_text(), re.M
    ):
        there = step.replace("/opt/discreet", str(made)).replace("/dist/", f"{dist}/")
        subprocess.run(there, shell=True, check=True)
    words = [made / "bin" / "discreet", "service", "shuffler", "--help"]
    assert b"--log-format" in subprocess.run(words, check=True, capture_output=True).stdout
    if docker_answers() and (image := _base()):
        file, arg = str(SHIPPED / "Dockerfile"), f"PYTHON={image}"
        subprocess.run(["docker", "build", "-f", file, "--build-arg", arg, str(ROOT)], check=True)


def _base():
    """An image of Python that is here already; nothing is fetched."""
    done = subprocess.run(
        ["docker", "image", "ls", "-q", "python:3.11-slim"], capture_output=True, text=True
    )
    return done.stdout.split()[0] if done.stdout.split() else ""


def test_the_list_of_extras_is_what_the_image_installs():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (asked,) = re.findall(r'dist/report\.json "\.\[(.*)\]"', (ROOT / "Makefile").read_text())
    assert set(asked.split(",")) == {"service", "postgres"} <= set(extras)
