"""Sessions of devices: each sends one message over HTTPS and is gone.

A leader is an ASGI application over the journals of :mod:`privstats.engines.journal`, and helpers dial out to it. The
folder of a run, its history, status, metrics and log are :mod:`privstats.engines.network`'s; protocols with several
messages of a client go over Flower.
"""
