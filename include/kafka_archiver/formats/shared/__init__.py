"""What formats share: codecs, the columns of a record, where blocks end, rows that wait for their block."""
