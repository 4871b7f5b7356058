"""The door of a server that strangers reach: which connections are accepted, and for how long.

``flower serve`` and ``http lead`` use it, each with its own proof of identity.
"""
