"""One DAG run: its interval, its parameters, and its turn."""
