"""`airflow dags backfill`, the command of Airflow 2, on Airflow 3's scheduler."""
