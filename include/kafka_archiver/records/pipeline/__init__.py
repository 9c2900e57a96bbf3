"""The stages between a reader and the encoders: batches in, batches out, and no offset lost on the way.

`stages.stages_of` has the list, `runner.Runner` runs it. Knows neither Spark nor Kafka.
"""
