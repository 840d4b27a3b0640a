"""The fixtures that several rooms' tests share; each module of tests/kit has its own."""

pytest_plugins = [
    "tests.kit.chart_files",
    "tests.kit.charts",
    "tests.kit.clocks",
    "tests.kit.commands",
    "tests.kit.files",
    "tests.kit.logs",
    "tests.kit.runs",
    "tests.kit.servers",
    "tests.kit.structlogs",
]
