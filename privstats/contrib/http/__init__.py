"""Sessions of devices: each sends one message over HTTPS and is gone.

A leader is an ASGI application over the journals of :mod:`privstats.engines.journal`, and helpers dial out to it.
"""
