"""Agents written in YAML."""
