"""Parts of the load: what one process carries in files, and what whole trainings do."""
