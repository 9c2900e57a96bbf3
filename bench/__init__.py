"""`make bench`: measures the archive job on real services, beside a bare program.

docs/PERFORMANCE.md explains the figures and the method.
"""
