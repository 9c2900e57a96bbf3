"""Layouts: where records are filed. Writer, manifest, leftovers, proof and audit know parts, and ask the layout."""
