"""`discreet service init`: a folder per role, or none at all."""


def test_a_folder_for_every_role(discreet, folder, small):
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {
        "charter.json",
        "shuffler/shuffler.toml",
        "analyser/analyser.toml",
        "analyser/signing.key",
        "analyser/token",
        "device/device.toml",
    } <= names
    for secret in ("analyser/signing.key", "analyser/token", "analyser/study.db"):
        assert (folder / secret).stat().st_mode & 0o077 == 0
    code, _, err = discreet("service", "init", str(folder), *small)
    assert code == 2 and "exists already" in err


def test_what_is_refused_leaves_no_folder(discreet, small, tmp_path):
    where = tmp_path / "service"
    words = (*small, "--min-users", "100000")
    code, _, err = discreet("service", "init", str(where), *words)
    assert code == 2 and "fewer than min_users" in err
    assert not where.exists()
    assert discreet("service", "init", str(where), *small)[0] == 0
