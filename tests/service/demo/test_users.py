"""Simulated users: their diary survives a kill at any byte."""

from discreet.service.demo.users import Diary, diaries


def test_a_diary_with_a_line_cut_short(tmp_path):
    path = tmp_path / "users" / "0.diary"
    diary = Diary(path)
    assert diary.entries() == {}
    diary.write(4, "accepted")
    diary.write(6, "ticketSpent")
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        known = Diary(path).entries()
        assert list(known.items()) == [(4, "accepted"), (6, "ticketSpent")][: len(known)]
        assert len(known) == whole[:cut].count(b"\n")
        diary.write(8, "accepted")  # a torn line is closed, never mixed up with the next
        assert Diary(path).entries()[8] == "accepted"
        assert set(Diary(path).entries()) <= {4, 6, 8}


def test_diaries_of_all_parts(tmp_path):
    Diary(tmp_path / "users" / "0.diary").write(0, "accepted")
    Diary(tmp_path / "users" / "1.diary").write(1, "accepted")
    assert sorted(diaries(tmp_path)) == [0, 1]
