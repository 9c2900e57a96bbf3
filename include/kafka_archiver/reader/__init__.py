"""Read an archive back: by topic, hours and offsets, or one record by its offset. Writes nothing."""
