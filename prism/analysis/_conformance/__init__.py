"""A log held against a chart."""
