"""The `airflow archive` commands: one file a command or pair, each imported only when it runs."""
