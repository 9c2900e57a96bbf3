"""The documents of an archive on its store."""
