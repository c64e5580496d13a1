"""Conjugate gradients and the line search, on matrices and functions known in full."""

import numpy as np
import pytest

from discreet.privacy.postprocess.dual_steps import conjugate_gradients, search


@pytest.mark.parametrize("size", [1, 3, 8])
def test_a_small_system_is_solved_to_a_percent(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size))
    matrix, g = root @ root.T + np.eye(size), rng.normal(size=size)
    ridge = np.full(size, 0.1)

    def apply(v, out):
        out[:] = matrix @ v

    step = conjugate_gradients(apply, g, np.diag(matrix) + ridge, ridge)
    exact = np.linalg.solve(matrix + 0.1 * np.eye(size), g)
    error = step - exact
    assert error @ (matrix @ error) <= 0.05**2 * (exact @ (matrix @ exact))


def test_no_gradient_no_step():
    def apply(v, out):
        out[:] = v

    assert not conjugate_gradients(apply, np.zeros(3), np.ones(3), np.zeros(3)).any()


@pytest.mark.parametrize(("top", "length"), [(5.0, 1.0), (0.3, 0.3)])
def test_the_search_ends_at_the_top_or_at_the_border(top, length):
    """A parabola with its maximum at ``top``, climbed from zero, at most to one."""

    def gradient(u):
        return top - u

    found, g = search(gradient, np.zeros(1), np.ones(1), top, 1.0)
    assert found == pytest.approx(length, abs=0.1 * length)
    assert g[0] == pytest.approx(top - found)
