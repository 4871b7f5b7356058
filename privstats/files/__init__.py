"""Files: atomic writes and bounded reads, the signed envelope, keys in files, numbers in JSON."""
