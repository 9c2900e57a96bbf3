"""One chunk: an iterator of Arrow record batches in, objects and an account out. Knows neither Spark nor Kafka.

`chunk.write_chunk` runs in the tasks, `commit.complete` and `commit.abort` in the driver.
"""
