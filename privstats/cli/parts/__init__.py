"""Parts that commands share; every module next to this package is a command itself."""
