"""The `airflow archive` commands: one file a command, named like it, each imported only when it runs."""
