"""Kafka, seen from outside the data path: topics, watermarks, groups. The only place that knows confluent_kafka."""
