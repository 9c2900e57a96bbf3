"""Decodes Avro, column by column: each field of all records at once.

`schema` parses, `types` says which Arrow types the columns have, `resolve` plans how the bytes of a writer's schema
become these columns, and the plan's nodes read: all records as vectors (`column`), or one record (`value`), which also
says what is wrong with it. No library does this: fastavro needs three to ten times the CPU, record by record, and does
not say which branch of a union it read; pyruhvro panics on decimals and ignores bytes after the record.
"""
