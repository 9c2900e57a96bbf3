"""The archiver's page, health and metrics, below `/archiver` of Airflow's API server. The only room of FastAPI."""
