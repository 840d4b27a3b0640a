"""Tables of measures, made from frames of events."""
