"""The figures, drawings and tables of a page."""
