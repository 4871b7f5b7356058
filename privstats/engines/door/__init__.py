"""The door of a server that strangers reach: which connections are let in, and how long each may take.

Both carriers have it: ``flower serve`` for parties' nodes, ``http lead`` for devices and helpers. Each carrier has its
own proof of identity.
"""
