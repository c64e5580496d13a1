"""What the commands of a service share: one sentence for what is wrong."""


def test_bad_input_is_one_sentence(discreet, folder, tmp_path):
    for arguments, sentence in (
        (("status", "--url", "http://127.0.0.1:9"), "Cannot reach"),
        (("shuffler", "--config", str(tmp_path / "none.toml")), "Cannot read"),
        (("verify", str(tmp_path / "none.json")), "Cannot read"),
        (("tickets", str(folder), "--count", "0"), "at least one ticket"),
        (("tickets", str(tmp_path), "--count", "1"), "tickets are the enroller's"),
        (("init", str(tmp_path / "new"), "--url", "example.org"), "such as 'https://"),
    ):
        code, _, err = discreet("service", *arguments)
        assert code == 2 and sentence in err and err.count("\n") == 1
