"""Decides which offsets a plan takes of each partition, by policies where the brokers are in a strange state.

`state`: a partition at planning; `beginnings`: where its range starts; `policies`: the decisions about strange states;
`partitions`: the offsets that a plan takes; `left_out`: the offsets that no plan has.
"""
