"""Layouts: where records are filed. Writer, manifest, leftovers, proof and audit ask the layout about parts."""
