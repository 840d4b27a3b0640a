"""The tree of a chart with states inside states: as written, checked, in numbers, and its steps."""
