"""The promise: guarantees, noise, calibration, releases, post-processing, audit."""
