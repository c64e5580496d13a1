"""Mechanisms of either schedule, for tests that go through both."""


def calibrated(trust, shape, *, schedule="batch", **options):
    """A batch, or a stream of so many episodes."""
    if schedule == "batch":
        return trust.calibrate(shape, **{n: o for n, o in options.items() if n != "episodes"})
    return trust.calibrate_stream(shape, **options)
