"""Changes an archive: plan, archive, verify, commit, close hours, rebuild, repair."""
