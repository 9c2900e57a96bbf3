"""An opened archive: its brokers, store, ledger and keys, the line of its plans, its history."""
