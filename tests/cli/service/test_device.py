"""`discreet service device`: a person takes part, once."""

import json

from discreet.service.analyser.process import make_analyser
from discreet.service.configs import AnalyserConfig, ShufflerConfig
from discreet.service.shuffler.server import make_shuffler
from helpers.services import serving


def test_a_person_takes_part_and_everything_is_verified(discreet, folder, tmp_path):
    discreet("service", "tickets", str(folder), "--count", "2")
    pass_ = (folder / "enroller" / "tickets.txt").read_text().split()[0]
    shuffler = make_shuffler(
        ShufflerConfig.read(folder / "shuffler" / "shuffler.toml"), rehearsal=True
    )
    with serving(shuffler) as url:
        for role in ("analyser", "device"):
            path = folder / role / f"{role}.toml"
            text = path.read_text().replace("http://127.0.0.1:8700", url)
            path.write_text(text.replace("delay = 60.0", "delay = 0.0"))
        config = AnalyserConfig.read(folder / "analyser" / "analyser.toml")
        analyser = make_analyser(config, rehearsal=True)
        assert analyser.step() == "waiting"
        analyser.close()
        device = ("service", "device", "--config", str(folder / "device" / "device.toml"))
        device = (*device, "--rehearsal", "--ticket", pass_)
        _, out, _ = discreet(*device)
        shown = json.loads(out)
        assert len(shown["policy"]) == 2 and shown["actions"] == ["0", "1"]
        life = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [0, 1]}
        (tmp_path / "life.json").write_text(json.dumps(life))
        episode = ("--episode", str(tmp_path / "life.json"))
        (tmp_path / "slip.json").write_text(json.dumps(life | {"rewards": [0, 7]}))
        code, _, err = discreet(*device, "--episode", str(tmp_path / "slip.json"))
        assert code == 2 and "rewards in [0, 1]. Nothing was sent; mend" in err
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "accepted"}
        assert json.loads(discreet(*device, *episode)[1]) == {"state": "ticketSpent"}
        _, out, _ = discreet("service", "status", "--url", url, "--json")
        assert json.loads(out)["totals"]["received"] == 1
        assert "SIMULATED" in discreet("service", "status", "--url", url)[1]
    charter, manifests = str(folder / "charter.json"), str(folder / "analyser" / "manifests")
    study = str(folder / "analyser" / "study.db")
    command = ("service", "verify", charter, "--manifests", manifests, "--study", study)
    code, out, _ = discreet(*command, "--json")
    found = json.loads(out)
    assert code == 0 and found["manifests"] == 1 and found["batches_counted"] == 0
    assert 0 < found["delta_proven"] <= 1e-4
    (folder / "charter.json").write_bytes((folder / "charter.json").read_bytes() + b" ")
    code, _, err = discreet(*command)
    assert code == 2 and "canonical JSON" in err
