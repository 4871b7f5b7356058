"""Join plan and protocol: build clients from moments, and a release from the unmasked sum; without state."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.session.charges import Charge as Charge
    from privstats.session.charges import ReleaseCharge as ReleaseCharge
    from privstats.session.charges import RoundCharge as RoundCharge
    from privstats.session.charges import free as free
    from privstats.session.charges import withdraw as withdraw
    from privstats.session.charges import withdraw_run as withdraw_run
    from privstats.session.client_updates import ClientUpdates as ClientUpdates
    from privstats.session.local import LocalParties as LocalParties
    from privstats.session.local import aggregate_unmasked as aggregate_unmasked
    from privstats.session.local import local_parties as local_parties
    from privstats.session.machines import Contribution as Contribution
    from privstats.session.machines import client as client
    from privstats.session.machines import contribution as contribution
    from privstats.session.machines import helper as helper
    from privstats.session.machines import on_upload as on_upload
    from privstats.session.machines import server as server
    from privstats.session.noise import helper_noise as helper_noise
    from privstats.session.unmasked import release as release
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.session.charges": ["Charge", "ReleaseCharge", "RoundCharge", "free", "withdraw", "withdraw_run"],
            "privstats.session.client_updates": ["ClientUpdates"],
            "privstats.session.local": ["LocalParties", "aggregate_unmasked", "local_parties"],
            "privstats.session.machines": ["Contribution", "client", "contribution", "helper", "on_upload", "server"],
            "privstats.session.noise": ["helper_noise"],
            "privstats.session.unmasked": ["release"],
        },
    )
