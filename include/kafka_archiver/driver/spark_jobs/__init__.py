"""The main programs of the jobs. Spark puts their folder on `sys.path`: so nothing else is in it."""
