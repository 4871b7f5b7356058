"""What commands are made of; every module beside this package is a command itself."""
