"""C of this package: what compiles it, and what finds its binaries. Everything works without it, more slowly."""
