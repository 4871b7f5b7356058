"""The door of a server that strangers reach.

``flower serve`` and ``http lead`` use it, each with its own proof of identity.
"""
