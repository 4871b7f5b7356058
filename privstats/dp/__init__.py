"""Differential privacy of moments: exact bounds, exact noise, and a record of what was spent."""

from privstats.dp.accounts import Account, Cap, Spend
from privstats.dp.allocation import default_shares, optimal_shares, suggested_shares
from privstats.dp.calibration import Noise, NoiseRow, calibrate
from privstats.dp.client_norm import client_norm, clip_client
from privstats.dp.gaussian import compose, gaussian_delta, gaussian_epsilon, gaussian_mu, operating_point
from privstats.dp.guarantee import Guarantee
from privstats.dp.ledger import Ledger
from privstats.dp.ledger_price import Cost
from privstats.dp.mechanisms import draw_central, draw_member, draw_share
from privstats.dp.min_count import (
    destinations,
    doubtful_counts,
    drop_probability,
    noise_copies,
    suppressed,
    without_rare,
)
from privstats.dp.privacy import NoPrivacy, Privacy
from privstats.dp.pure import joint_epsilon, l1_sensitivity, pure_mu
from privstats.dp.samplers import discrete_gaussian, discrete_laplace, rounded_gaussian
from privstats.dp.sensitivity import client_mu, grid_sensitivity, group_mu, joint_mu, sensitivity

__all__ = [
    "Account",
    "Cap",
    "Cost",
    "Guarantee",
    "Ledger",
    "NoPrivacy",
    "Noise",
    "NoiseRow",
    "Privacy",
    "Spend",
    "calibrate",
    "client_mu",
    "client_norm",
    "clip_client",
    "compose",
    "default_shares",
    "destinations",
    "discrete_gaussian",
    "discrete_laplace",
    "doubtful_counts",
    "draw_central",
    "draw_member",
    "draw_share",
    "drop_probability",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "grid_sensitivity",
    "group_mu",
    "joint_epsilon",
    "joint_mu",
    "l1_sensitivity",
    "noise_copies",
    "operating_point",
    "optimal_shares",
    "pure_mu",
    "rounded_gaussian",
    "sensitivity",
    "suggested_shares",
    "suppressed",
    "without_rare",
]
