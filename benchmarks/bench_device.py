"""What a report costs a device: processor time, memory, messages and bytes.

    python -m benchmarks.bench_device

Standard library only, like the device itself. Time is processor time, the best of five, of loading
the description and encoding one episode; memory is the most that Python held at once for it.
"""

import json
import random
import time
import tracemalloc

from discreet.device import ENVELOPE, ClassesDevice, load

SIZES = {
    "S=4, H=6, 2e4 users": (4, 2, 6, 20_000, [39371, 100]),
    "S=50, H=20, 1e6 users": (50, 5, 20, 10**6, [1393, 1]),
    "ICU-Sepsis size, 1e6 users": (716, 25, 20, 10**6, [1393, 1]),
    "ICU-Sepsis size, 1e8 users": (716, 25, 20, 10**8, [1393, 1]),
}
"""States, actions, steps, users, lambda (epsilon = 1, delta = 1e-6)."""


def description(states, actions, horizon, users, mean):
    """A batch with a random policy."""
    rng = random.Random(0)
    return {
        "version": 1,
        "encoder": "classes",
        "states": states,
        "actions": actions,
        "horizon": horizon,
        "policy": [[rng.randrange(actions) for _ in range(states)] for _ in range(horizon)],
        "statistics": ["transitions", "rewards"],
        "last_transitions": False,
        "users": users,
        "lambda": mean,
    }


def episode(plain):
    """One that follows the policy."""
    rng = random.Random(1)
    states = [rng.randrange(plain["states"]) for _ in range(plain["horizon"] + 1)]
    actions = [row[s] for row, s in zip(plain["policy"], states, strict=False)]
    return {"states": states, "actions": actions, "rewards": [0.3] * plain["horizon"]}


def once(text, life):
    """From the description as it came to the bytes of a report; seconds of both halves."""
    started = time.process_time()
    device = load(json.loads(text))
    loaded = time.process_time()
    data = device.to_bytes(device.encode(life))
    return loaded - started, time.process_time() - loaded, len(data)


def main():
    """Print the table."""
    print(f"{'size':<28} {'messages':>8} {'sealed':>11} {'load ms':>8} {'encode ms':>9} {'MB':>6}")
    for name, size in SIZES.items():
        plain = description(*size)
        text, life = json.dumps(plain), episode(plain)
        runs = [once(text, life) for _ in range(5)]
        tracemalloc.start()
        once(text, life)
        most = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        messages = ClassesDevice(plain).messages
        loading, encoding = (1e3 * min(run[i] for run in runs) for i in (0, 1))
        print(
            f"{name:<28} {messages:>8,} {messages * ENVELOPE:>11,} {loading:>8.1f} "
            f"{encoding:>9.1f} {most:>6.1f}"
        )


if __name__ == "__main__":
    main()
