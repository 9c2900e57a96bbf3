"""Transforms: stages that change decoded columns or bytes, between `decode` and the encoders.

`chain.chain_of` has those of a plan. A transform is a pair: what it makes of the columns' types, and of a batch.
"""
