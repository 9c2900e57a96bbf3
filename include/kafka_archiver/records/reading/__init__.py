"""Read archived objects back: unsealed, checked against the manifest, as batches with the columns of their plan.

All that reads an object by its plan opens it here. The audit has readers of its own.
"""
