"""One spark-submit for a run: what the job is told, how its JVMs start, and what its end means."""
