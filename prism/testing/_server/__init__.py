"""Fake model servers on loopback, with faults on demand."""
