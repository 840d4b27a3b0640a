"""Evaluating what a workflow's author wrote, without trusting it.

Conditions are expressions (`simpleeval`, the only module that imports it is `_conditions`), code
steps are programs (`pydantic-monty`, known to `_workers` alone).
"""
