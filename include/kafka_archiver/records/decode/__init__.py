"""Decoders of values and keys, the registry's client, and `reframe`, which writes new schema ids into records."""
