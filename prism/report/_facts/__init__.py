"""What a report says of a run, read from its log."""
