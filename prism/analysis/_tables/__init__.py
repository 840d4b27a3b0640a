"""Frames of events to tables of measures."""
