"""`discreet service analyser`: what is refused before it runs."""


def test_a_rehearsal_is_not_run_by_mistake(discreet, folder):
    config = str(folder / "analyser" / "analyser.toml")
    code, _, err = discreet("service", "analyser", "--config", config)
    assert code == 2 and "--rehearsal" in err
