"""Everything that reads an archive's state: status, health, doctor, coverage, overview. It changes nothing."""
