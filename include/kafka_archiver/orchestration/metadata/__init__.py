"""What the commands ask of Airflow's metadata database. Tasks may not: they have Airflow's task SDK."""
