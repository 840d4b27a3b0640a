"""Evaluating what a workflow's author wrote, without trusting it.

Conditions are expressions of `prism.expressions`, code steps are programs (`pydantic-monty`, known
to `_workers` alone).
"""
