"""`make demo`: a believable stream, archived by Airflow and Spark, with a kill in the middle; then the proof.

Everything shown is checked against what was produced, not against what the archiver says of itself; the demo ends
with an error as soon as something is not as promised. `__main__.py` reads from top to bottom.
"""
