"""Kafka: topics, watermarks, groups, and the native reader. Only this package imports confluent_kafka."""
