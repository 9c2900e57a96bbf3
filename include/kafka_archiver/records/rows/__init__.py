"""Columns that C fills, of Avro or of JSON: `rows.c`, and what calls it."""
