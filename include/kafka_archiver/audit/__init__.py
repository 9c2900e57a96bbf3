"""The audit's decisions: takes documents and listings, returns findings. Pure; reads objects with other libraries.

An import-linter contract forbids imports of `formats`: the code that wrote an object must not check it.
"""
