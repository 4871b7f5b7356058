"""Hold the version for the build, the release manifest and the command line."""

__version__ = "1.0.0rc1"
