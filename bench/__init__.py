"""How fast the archive job is, on real services of its own, beside a bare program: `make bench`.

What a figure means, and how it is measured, is in docs/PERFORMANCE.md.
"""
