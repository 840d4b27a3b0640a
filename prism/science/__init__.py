"""Experiments: many runs of one plan, compared, repeated with a change, and calibrated.

Needs the extra ``science``.
"""

__all__: list[str] = []
