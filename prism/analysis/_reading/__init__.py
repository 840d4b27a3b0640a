"""Reading logs into frames of events."""
