"""What a process has used: memory and processor time, from /proc."""

import os
import pathlib


def most_memory(pid="self"):
    """Megabytes of memory that a process held at most."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["VmHWM"].split()[0]) / 1024


def processor_seconds(pid):
    """Of a process, so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    """Megabytes of memory that a process holds now."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
