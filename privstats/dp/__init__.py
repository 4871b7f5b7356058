"""Differential privacy of moments: exact bounds, exact noise."""

from privstats.dp.allocation import default_shares
from privstats.dp.calibration import Noise, NoiseRow, calibrate
from privstats.dp.gaussian import compose, gaussian_delta, gaussian_epsilon, gaussian_mu
from privstats.dp.mechanisms import draw_central, draw_share
from privstats.dp.privacy import NoPrivacy, Privacy
from privstats.dp.samplers import discrete_gaussian, rounded_gaussian
from privstats.dp.sensitivity import client_mu, grid_sensitivity, joint_mu, sensitivity
from privstats.dp.threshold import suppressed

__all__ = [
    "NoPrivacy",
    "Noise",
    "NoiseRow",
    "Privacy",
    "calibrate",
    "client_mu",
    "compose",
    "default_shares",
    "discrete_gaussian",
    "draw_central",
    "draw_share",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "grid_sensitivity",
    "joint_mu",
    "rounded_gaussian",
    "sensitivity",
    "suppressed",
]
