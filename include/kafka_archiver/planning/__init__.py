"""Which offsets a plan takes of each partition, and the policies for strange states of the brokers. Pure.

`state`: a partition at planning; `beginnings`: where its range starts; `policies`: the decisions about strange states;
`partitions`: the offsets that a plan takes; `left_out`: the offsets that no plan has.
"""
