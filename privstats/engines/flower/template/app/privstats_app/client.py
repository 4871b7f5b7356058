from privstats.engines.flower.client_app import app

__all__ = ["app"]
