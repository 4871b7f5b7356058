"""The door of a server that strangers reach: which connections are let in, and how long each may take.

Both carriers have it: ``flower serve`` for parties' nodes, ``http lead`` for devices and helpers. What proves who
somebody is differs between them, and is theirs.
"""
