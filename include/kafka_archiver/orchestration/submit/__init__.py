"""One spark-submit for a run: the job's settings and endpoints, its JVMs, and the meaning of its end."""
