"""Everything that Airflow calls.

`cli/`: commands. `dags/`: DAGs and their tasks. `dag_run/`: the interval, notes and counters of one run. `submit/`:
spark-submit and its log. `backfill/`: which runs come first. `alerts/`, `page/`. `metadata/`: Airflow's database.
`connections/`: Airflow's connections as options of clients. `terminal/`: bars, tables and standard output.
"""
