"""Parts that commands share; every module beside this package is a command itself."""
