from privstats.engines.flower.server_app import app

__all__ = ["app"]
