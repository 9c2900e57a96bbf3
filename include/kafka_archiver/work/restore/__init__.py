"""Restore: from an archive to a Kafka topic, exactly once and proved.

`plan` freezes what goes where, `partition_writer` writes one target partition, `verify` reads it back. A `lane` is the
records of one target partition in their order.
"""
