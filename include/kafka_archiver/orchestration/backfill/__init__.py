"""`airflow dags backfill` on Airflow 3: the command of Airflow 2, carried out by Airflow 3's scheduler."""
