"""The fixtures that several rooms' tests share; each module of tests/kit has its own."""

import gc
import os
import re
import signal
import ssl
import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

# how long an example takes says more of the machine's load than of the code
settings.register_profile(
    "prism", max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("prism"), max_examples=25)
settings.register_profile("thorough", settings.get_profile("prism"), max_examples=200)
settings.load_profile("prism")

# each worker of xdist has a core of its own, and tables of tests are small
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# many tests start processes of their own: compile modules once, not in each of them, nor the tests
# themselves in each run, whose asserts pytest rewrites in twice the time that importing them takes
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# killed or not, a process loses only with the power what it has written but not synchronized
os.fsync = lambda file: None

# a shell that starts tests in the background has them ignore interruptions, which some tests send
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# each client reads a hundred authorities to trust, though it speaks to this machine alone
ssl.create_default_context = cache(ssl.create_default_context)

# nothing that collecting makes is garbage before its end
gc.disable()

# pytest rewrites the asserts of those that no earlier one has imported
FIXTURES = [
    "tests.kit.modules",
    "tests.kit.browsers",
    "tests.kit.charts",
    "tests.kit.clocks",
    "tests.kit.commands",
    "tests.kit.files",
    "tests.kit.logs",
    "tests.kit.runs",
    "tests.kit.servers",
    "tests.kit.structlogs",
    "tests.kit.world_runs",
]


def hands_out(config: pytest.Config) -> bool:
    """Return whether this process hands tests out, and runs none."""
    return config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Give fixtures to every process that runs tests."""
    for name in () if hands_out(config) and not config.option.collectonly else FIXTURES:
        # the conftest of a folder that is named on the command line may have imported it before
        if name in sys.modules:
            config.pluginmanager.register(sys.modules[name], name)
        else:
            config.pluginmanager.import_plugin(name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Spare the process that hands tests out the last collections of garbage: it ran none."""
    if hands_out(session.config):
        gc.freeze()


def pytest_collection(session: pytest.Session) -> None:
    """Have each worker begin with modules of its own, so that they compile each for one another."""
    everything = session.config.args == session.config.getini("testpaths")
    if not everything or "PYTEST_XDIST_WORKER" not in os.environ:
        return

    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    root = session.config.rootpath
    modules = sorted(root.glob("tests/**/test_*.py"))
    for path in modules[number :: int(os.environ["PYTEST_XDIST_WORKER_COUNT"])]:
        # what cannot be imported is collected, and told of, later
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but every n-th case of a test marked ``sampled(n)`` to the slow tests.

    With ``sampled(n, long=m)`` all but every m-th of the others are left to the long tests.

    Raises:
        pytest.UsageError: If a test is slow and long: ``-m slow`` would run it.
    """
    cases: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("slow") and item.get_closest_marker("long"):
            raise pytest.UsageError(f"{item.nodeid} is marked both slow and long")
        sampled = item.get_closest_marker("sampled")
        if sampled is None:
            continue

        test = item.nodeid.partition("[")[0]
        if cases[test] % sampled.args[0]:
            is_slow = cases[test] % sampled.kwargs.get("long", 1) == 0
            item.add_marker(pytest.mark.slow if is_slow else pytest.mark.long)
        cases[test] += 1


def pytest_collection_finish() -> None:
    """Leave thousands of tests and their modules out of every later collection of garbage."""
    gc.freeze()
    # what fixtures keep would be looked through thousands of times
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker send one report of a test that passes silently, with the time of all three.

    The report is without keywords, which nobody reads of such a test. That a test begins is told
    where lines are printed for it.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None

    if item.config.option.verbose > 0:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if all(report.passed and not report.sections for report in reports):
        (called,) = (report for report in reports if report.when == "call")
        called.duration = sum(report.duration for report in reports)
        called.keywords = {}
        reports = [called]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


_FOLDERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder, found without a look at those of a thousand tests before."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}{next(_FOLDERS)}", numbered=False)
