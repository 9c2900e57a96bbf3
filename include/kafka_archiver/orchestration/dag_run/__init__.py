"""What one DAG run is about: its interval, what a person told it, and when its turn comes."""
