"""Parts that formats share: codecs, the columns of a record, the ends of blocks, rows that wait for their block."""
