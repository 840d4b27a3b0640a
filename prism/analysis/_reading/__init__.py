"""The bytes of logs to frames of events."""
