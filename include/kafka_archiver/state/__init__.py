"""Reads an archive's state: status, health, doctor, coverage, overview. It changes no record and no plan."""
