"""The version, in one place: read by the build, the release manifest and the command line."""

__version__ = "0.2.0"
