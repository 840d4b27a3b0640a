"""The facts of a run that a report shows, read from its log."""
