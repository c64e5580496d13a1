from discreet.privacy.calibration.classes import Trials as Trials
from discreet.privacy.calibration.classes import check_batch as check_batch
from discreet.privacy.calibration.classes import classes_delta as classes_delta
from discreet.privacy.calibration.classes import classes_epsilon as classes_epsilon
from discreet.privacy.calibration.classes import classes_mean as classes_mean
from discreet.privacy.calibration.closed_forms import flip_probability as flip_probability
from discreet.privacy.calibration.closed_forms import gaussian_delta as gaussian_delta
from discreet.privacy.calibration.closed_forms import gaussian_epsilon as gaussian_epsilon
from discreet.privacy.calibration.closed_forms import gaussian_sigma as gaussian_sigma
from discreet.privacy.calibration.closed_forms import gaussian_variance as gaussian_variance
from discreet.privacy.calibration.closed_forms import laplace_epsilon as laplace_epsilon
from discreet.privacy.calibration.closed_forms import laplace_scale as laplace_scale
from discreet.privacy.calibration.closed_forms import laplace_variance as laplace_variance
from discreet.privacy.calibration.closed_forms import least_epsilon as least_epsilon
from discreet.privacy.calibration.closed_forms import need_delta as need_delta
from discreet.privacy.calibration.distributions import NoisePmf as NoisePmf
from discreet.privacy.calibration.distributions import binomial_pmf as binomial_pmf
from discreet.privacy.calibration.distributions import (
    discrete_gaussian_pmf as discrete_gaussian_pmf,
)
from discreet.privacy.calibration.distributions import discrete_laplace_pmf as discrete_laplace_pmf
from discreet.privacy.calibration.distributions import poisson_pmf as poisson_pmf
from discreet.privacy.calibration.distributions import table_pmf as table_pmf
from discreet.privacy.calibration.grids import grid_delta as grid_delta
from discreet.privacy.calibration.grids import grid_sigma as grid_sigma
from discreet.privacy.calibration.grids import zcdp_sigma as zcdp_sigma
from discreet.privacy.calibration.lattice import discrete_gaussian_delta as discrete_gaussian_delta
from discreet.privacy.calibration.lattice import (
    discrete_gaussian_epsilon as discrete_gaussian_epsilon,
)
from discreet.privacy.calibration.lattice import discrete_laplace_delta as discrete_laplace_delta
from discreet.privacy.calibration.lattice import (
    discrete_laplace_epsilon as discrete_laplace_epsilon,
)
from discreet.privacy.calibration.losses import Shift as Shift
from discreet.privacy.calibration.losses import delta_of_moves as delta_of_moves
from discreet.privacy.calibration.losses import delta_of_shifts as delta_of_shifts
from discreet.privacy.calibration.losses import epsilon_of_moves as epsilon_of_moves
from discreet.privacy.calibration.losses import epsilon_of_shifts as epsilon_of_shifts
from discreet.privacy.calibration.piles import worst_gaussian_delta as worst_gaussian_delta
from discreet.privacy.calibration.routes import Route as Route
from discreet.privacy.calibration.routes import binomial_routes as binomial_routes
from discreet.privacy.calibration.routes import cross_check as cross_check
from discreet.privacy.calibration.routes import gaussian_routes as gaussian_routes
from discreet.privacy.calibration.routes import laplace_routes as laplace_routes
from discreet.privacy.calibration.routes import rdp_epsilon as rdp_epsilon
from discreet.privacy.calibration.routes import zcdp_epsilon as zcdp_epsilon
from discreet.privacy.calibration.search import NoiseBits as NoiseBits
from discreet.privacy.calibration.search import binomial_trials as binomial_trials
from discreet.privacy.calibration.search import discrete_gaussian_sigma as discrete_gaussian_sigma
from discreet.privacy.calibration.search import noise_bits as noise_bits
