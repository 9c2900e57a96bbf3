"""Queries of Airflow's metadata database, for the commands. Tasks have no access to it: they use Airflow's task SDK."""
