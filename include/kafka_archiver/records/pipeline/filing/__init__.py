"""The stages `time` and `layout`: which time a record has, and which path."""
