"""The documents of jobs: what a task gives to a main program. Pure."""
