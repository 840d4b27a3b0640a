"""The fixtures that several rooms' tests share; each module of tests/kit has its own."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes says more of the machine's load than of the code
settings.register_profile(
    "prism", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("prism"), max_examples=200)
settings.load_profile("prism")

pytest_plugins = [
    "tests.kit.chart_files",
    "tests.kit.charts",
    "tests.kit.clocks",
    "tests.kit.commands",
    "tests.kit.files",
    "tests.kit.logs",
    "tests.kit.modules",
    "tests.kit.proxies",
    "tests.kit.runs",
    "tests.kit.servers",
    "tests.kit.structlogs",
    "tests.kit.world_runs",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but every n-th case of a test marked ``sampled(n)`` to the slow tests."""
    cases: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is None:
            continue

        test = item.nodeid.partition("[")[0]
        if cases[test] % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
        cases[test] += 1
