"""The pytest plugin, which pytest loads wherever prism is installed; ``docs/testing.md`` shows it at work.

Fixtures and options are in ``prism.testing._fixtures``, which imports next to nothing before one of
them is used.
"""

pytest_plugins: tuple[str, ...] = ("prism.testing._fixtures",)
