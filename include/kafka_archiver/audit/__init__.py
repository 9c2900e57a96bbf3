"""The audit's decisions: documents and listings in, findings out. Pure, and by readers that are not our own.

An import-linter contract keeps it apart from `formats`: what wrote an object must not be what vouches for it.
"""
