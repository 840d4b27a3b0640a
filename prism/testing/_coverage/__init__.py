"""Coverage of charts by a test suite."""
