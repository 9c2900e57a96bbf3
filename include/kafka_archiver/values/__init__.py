"""Small values that everything else is made of: offset ranges, hours, documents, checksums. Pure."""
