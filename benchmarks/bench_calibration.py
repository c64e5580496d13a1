"""The noise that a guarantee needs: the Gaussian of one release."""

from benchmarks._measure import compare, package

EPSILON, DELTA = 1.0, 1e-6


def run(quick: bool) -> list[dict]:
    """Both in closed form (Balle and Wang, 2018); no row where autodp is not installed."""
    try:
        peer, against = _autodp()
    except ImportError:
        return []
    return [_gaussian(peer, against, 5 if quick else 15)]


def _gaussian(peer, against, repeats: int) -> dict:
    from discreet.privacy.accounting.closed_forms import gaussian_sigma

    ours = gaussian_sigma(1.0, EPSILON, DELTA)
    if abs(peer() / ours - 1) > 1e-2:
        raise RuntimeError(f"both must find the same noise, got {ours} and {peer()}")
    return compare(
        f"Gaussian noise for epsilon={EPSILON:g}, delta={DELTA:g}",
        lambda: gaussian_sigma(1.0, EPSILON, DELTA),
        peer,
        against,
        "ms",
        repeats=repeats,
        per=(1e3, 1e3),
    )


def _autodp():
    from autodp.calibrator_zoo import ana_gaussian_calibrator
    from autodp.mechanism_zoo import ExactGaussianMechanism

    def calibrated() -> float:
        found = ana_gaussian_calibrator()(ExactGaussianMechanism, EPSILON, DELTA)
        return float(found.params["sigma"])

    note = (
        "ours also proves in decimal arithmetic that the double which it returns keeps the promise"
    )
    return calibrated, package("autodp", "autodp, in closed form")._replace(note=note)


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
