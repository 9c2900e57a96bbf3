"""Writes one chunk: takes Arrow record batches, returns objects and an account. Imports neither Spark nor Kafka.

`chunk.write_chunk` runs in the tasks; the driver completes or aborts their uploads: `finish_uploads`.
"""
