"""What looks at an archive: status, health, doctor, coverage, overview."""
