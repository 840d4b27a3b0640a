"""The fixtures that several rooms' tests share; each module of tests/kit has its own."""

from hypothesis import HealthCheck, settings

# how long an example takes says more of the machine's load than of the code
settings.register_profile("prism", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("prism")

pytest_plugins = [
    "tests.kit.chart_files",
    "tests.kit.charts",
    "tests.kit.clocks",
    "tests.kit.commands",
    "tests.kit.files",
    "tests.kit.logs",
    "tests.kit.proxies",
    "tests.kit.runs",
    "tests.kit.servers",
    "tests.kit.structlogs",
    "tests.kit.world_runs",
]
