"""What a plan takes of each partition, and what happens where the brokers' state is strange. Pure.

`state`: a partition as it is found; `beginnings`: where its range starts; `policies`: who decides what is strange;
`partitions`: the offsets that a plan takes; `left_out`: those that no plan has.
"""
