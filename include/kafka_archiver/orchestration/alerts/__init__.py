"""What people and programs are told of a task that failed: its cause, and to whom it goes."""
