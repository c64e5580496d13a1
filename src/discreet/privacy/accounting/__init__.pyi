from discreet.privacy.accounting.distributions import binomial_pmf as binomial_pmf
from discreet.privacy.accounting.losses import delta_of_moves as delta_of_moves
from discreet.privacy.accounting.losses import delta_of_shifts as delta_of_shifts
from discreet.privacy.accounting.losses import epsilon_of_moves as epsilon_of_moves
from discreet.privacy.accounting.search import discrete_gaussian_sigma as discrete_gaussian_sigma
from discreet.privacy.accounting.search import noise_bits as noise_bits
