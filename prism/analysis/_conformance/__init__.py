"""Logs compared with a chart."""
