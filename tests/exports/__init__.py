"""Small dirty exports as hospitals' programs write them, and what must be read from each."""
