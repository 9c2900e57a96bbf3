"""The keys of the values that tasks leave for the page, alerts and later runs (XComs)."""

# The XCom of `close_hours` with the figures of the run (kafka_archiver.orchestration.dag_run.figures.Figures).
FIGURES = "figures"
# The XCom of the task `archive` with the CPU seconds of its last attempt.
ARCHIVE, CPU = "archive", "cpu_seconds"
# The XCom of a task at work: the last line about its job's progress (kafka_archiver.messages.progress), and its time.
PROGRESS = "progress"
# The XCom of `close_hours` with the number of errors in the last audit's report, if the run has taken some out of it.
DAMAGE_LEFT = "damage_left"
# The XCom of `audit` with its verdict and counts, also of a failed task.
AUDITED = "audit"
