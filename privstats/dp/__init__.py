"""Differential privacy of moments: exact bounds, noise and spending."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.dp.calibration import Noise as Noise
    from privstats.dp.calibration import NoiseRow as NoiseRow
    from privstats.dp.calibration import calibrate as calibrate
    from privstats.dp.calibration import destinations as destinations
    from privstats.dp.calibration import noise_copies as noise_copies
    from privstats.dp.calibration import suppressed as suppressed
    from privstats.dp.calibration import without_rare as without_rare
    from privstats.dp.clips import client_norm as client_norm
    from privstats.dp.clips import clip_client as clip_client
    from privstats.dp.clips import person_clip as person_clip
    from privstats.dp.gaussian import Guarantee as Guarantee
    from privstats.dp.gaussian import compose as compose
    from privstats.dp.gaussian import gaussian_delta as gaussian_delta
    from privstats.dp.gaussian import gaussian_epsilon as gaussian_epsilon
    from privstats.dp.gaussian import gaussian_mu as gaussian_mu
    from privstats.dp.gaussian import operating_point as operating_point
    from privstats.dp.ledger.accounts import Account as Account
    from privstats.dp.ledger.accounts import Cap as Cap
    from privstats.dp.ledger.accounts import Spend as Spend
    from privstats.dp.ledger.book import Ledger as Ledger
    from privstats.dp.ledger.price import Cost as Cost
    from privstats.dp.mechanisms import draw_central as draw_central
    from privstats.dp.mechanisms import draw_layers as draw_layers
    from privstats.dp.mechanisms import draw_member as draw_member
    from privstats.dp.mechanisms import draw_share as draw_share
    from privstats.dp.planning import doubtful_counts as doubtful_counts
    from privstats.dp.planning import drop_probability as drop_probability
    from privstats.dp.planning import optimal_shares as optimal_shares
    from privstats.dp.planning import suggested_shares as suggested_shares
    from privstats.dp.privacy import NoPrivacy as NoPrivacy
    from privstats.dp.privacy import Privacy as Privacy
    from privstats.dp.pure import joint_epsilon as joint_epsilon
    from privstats.dp.pure import l1_sensitivity as l1_sensitivity
    from privstats.dp.pure import pure_mu as pure_mu
    from privstats.dp.samplers import discrete_gaussian as discrete_gaussian
    from privstats.dp.samplers import discrete_laplace as discrete_laplace
    from privstats.dp.samplers import rounded_gaussian as rounded_gaussian
    from privstats.dp.sensitivities import averaged_mu as averaged_mu
    from privstats.dp.sensitivities import client_mu as client_mu
    from privstats.dp.sensitivities import default_shares as default_shares
    from privstats.dp.sensitivities import grid_sensitivity as grid_sensitivity
    from privstats.dp.sensitivities import group_mu as group_mu
    from privstats.dp.sensitivities import joint_mu as joint_mu
    from privstats.dp.sensitivities import sensitivity as sensitivity
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.dp.calibration": [
                "Noise",
                "NoiseRow",
                "calibrate",
                "destinations",
                "noise_copies",
                "suppressed",
                "without_rare",
            ],
            "privstats.dp.clips": ["client_norm", "clip_client", "person_clip"],
            "privstats.dp.gaussian": [
                "Guarantee",
                "compose",
                "gaussian_delta",
                "gaussian_epsilon",
                "gaussian_mu",
                "operating_point",
            ],
            "privstats.dp.ledger.accounts": ["Account", "Cap", "Spend"],
            "privstats.dp.ledger.book": ["Ledger"],
            "privstats.dp.ledger.price": ["Cost"],
            "privstats.dp.mechanisms": ["draw_central", "draw_layers", "draw_member", "draw_share"],
            "privstats.dp.planning": ["doubtful_counts", "drop_probability", "optimal_shares", "suggested_shares"],
            "privstats.dp.privacy": ["NoPrivacy", "Privacy"],
            "privstats.dp.pure": ["joint_epsilon", "l1_sensitivity", "pure_mu"],
            "privstats.dp.samplers": ["discrete_gaussian", "discrete_laplace", "rounded_gaussian"],
            "privstats.dp.sensitivities": [
                "averaged_mu",
                "client_mu",
                "default_shares",
                "grid_sensitivity",
                "group_mu",
                "joint_mu",
                "sensitivity",
            ],
        },
    )
