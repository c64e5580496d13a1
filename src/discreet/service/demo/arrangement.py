"""What one demonstration consists of: its size, its folder, its files."""

import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from discreet import _validate
from discreet._files import write_atomically
from discreet.errors import InvalidInputError
from discreet.privacy.trust import Shuffle
from discreet.service.demo.worlds import World, get_world
from discreet.service.founding import Founded, Terms, found, make_tickets

LEARNER = "flow-ucb"
NOT_PROTECTED = (
    "The users are simulated; this is a rehearsal and protects nobody.",
    "One machine holds every key: it could open every envelope and link it to its ticket. The "
    "promise needs a shuffler and an analyser that are two organisations and do not collude.",
    "Epsilon and delta are chosen to learn something from few users in a minute, not to be modest.",
    "There is no TLS on loopback; between machines a reverse proxy must add it.",
    "The one who starts this mints the tickets, too: nothing stops a crowd of invented users.",
    "All devices send from one address without a delay: timing and addresses hide nothing here.",
)
"""What this arrangement does not protect, said to whoever runs it."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """One demonstration.

    Attributes:
        world: the name of its environment.
        users: who take part, each once.
        spare: tickets beyond theirs, for people at the page.
        seed: of the users' lives and of the study; noise is the operating system's all the same.
        epsilon: promised (in a rehearsal: to nobody).
        delta: likewise.
        patience: seconds for which a batch may stay open.
    """

    world: str = "treatment"
    users: int = 1000
    spare: int = 0
    seed: int = 0
    epsilon: float = 4.0
    delta: float = 1e-4
    patience: int = 600

    def __post_init__(self) -> None:
        get_world(self.world)
        _validate.count(users=self.users, patience=self.patience)
        if self.users < 100:
            raise InvalidInputError(
                f"Expected at least 100 users, got users={self.users}: fewer fill no batches."
            )
        if self.seed < 0:
            raise InvalidInputError(f"Expected a seed of 0 or more, got seed={self.seed}.")

    @property
    def home(self) -> World:
        """Where users live."""
        return get_world(self.world)

    @property
    def trust(self) -> Shuffle:
        """What is promised."""
        return Shuffle(self.epsilon, self.delta, mechanism="classes")


def set_up(folder: Path, arrangement: Arrangement, url: str, port: int) -> Founded:
    """Found the service: charter, keys, a file per role, tickets, and the world for the page.

    Args:
        folder: must not exist yet.
        arrangement: what to show.
        url: where analyser and devices find the shuffler.
        port: where it listens.
    """
    world = arrangement.home
    founded = found(
        folder,
        Terms(purpose=world.purpose, least_users=2, patience=arrangement.patience, rehearsal=True),
        trust=arrangement.trust,
        url=url,
        seed=arrangement.seed,
        learner=LEARNER,
        states=list(world.states),
        actions=list(world.actions),
        horizon=list(world.steps),
        start_states=[world.states[s] for s in world.start],
        episodes=arrangement.users,
    )
    make_tickets(folder, arrangement.users + arrangement.spare)
    text = json.dumps(world.description(), allow_nan=False)
    write_atomically(folder / "shuffler" / "world.json", text.encode())
    file = founded.config("shuffler")
    text = re.sub(r"(?m)^port = .*$", f"port = {port}", file.read_text("utf-8"))
    text += "# The model of the study, so that people can play it at the page.\n"
    write_atomically(file, (text + 'world = "world.json"\n').encode())
    return founded


def free_port() -> int:
    """A loopback port that nobody uses at the moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
