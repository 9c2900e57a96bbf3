"""The path of a record: decoders, the pipeline of a chunk, formats, the writer."""
