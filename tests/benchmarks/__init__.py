"""What prism costs, next to other ways to do the same: run ``python -m tests.benchmarks``.

No test asserts a time. Every figure stands next to its target, and the reader judges.
"""
