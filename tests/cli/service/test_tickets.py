"""`discreet service tickets`: secrets here, digests there."""


def test_tickets_add_up_and_the_shuffler_gets_digests_only(discreet, folder):
    for count in (3, 2):
        assert discreet("service", "tickets", str(folder), "--count", str(count))[0] == 0
    tickets = (folder / "enroller" / "tickets.txt").read_text().split()
    digests = (folder / "shuffler" / "digests.txt").read_text().split()
    assert len(tickets) == len(digests) == 5 and all(line.startswith("sha256:") for line in digests)
    assert not {line.removeprefix("sha256:") for line in digests} & set(tickets)
