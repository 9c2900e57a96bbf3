"""Decides which offsets a plan takes of each partition, by policies where the brokers are in a strange state.

`survey`: asks the brokers; `partition_state`: a partition at planning; `beginnings`: where its range starts;
`policy_decisions`: the decisions about strange states; `planned_ranges`: the offset ranges that a plan takes, cut to
`source.max_records_per_run`; `left_out`: the offsets that no plan has.
"""
