"""A fire that is logged as a line of JSON, next to a bare structlog call with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import orjson
import structlog

from prism.runlog import RunLog, SimulatedClock, configure
from tests.benchmarks.contenders import MixinAgent, two_state_chart
from tests.benchmarks.harness import (
    Claim,
    Column,
    Effort,
    Measurement,
    Table,
    measure,
    named,
    ratio,
)

PRISM, GIVEN = "prism, structlog's own logger", "prism, chart made with logger=log"
CONFIGURED, REAL_TIME, SIMULATED = (
    "prism.runlog.configure",
    "RunLog, real time",
    "RunLog, simulated clock",
)
BARE, LOOKED_UP = "log.info(...)", "get_logger().info(...)"
MOST = 1.3
CONTEXT = {"post_id": "post_1"}
_KEYS = {
    "chart": "statechart",
    "agent_id": "agent_1",
    "from_state": "idle",
    "to_state": "scrolling",
    "trigger": "go",
    "ticks_in_state": 0,
    "context": CONTEXT,
}
_ARGUMENTS = ", ".join(f"{key}={value!r}" for key, value in _KEYS.items())
_CALL = f"info('statechart.transition', {_ARGUMENTS})"


class LoggedAgent(MixinAgent):
    """An agent with a name for the log."""

    agent_id = "agent_1"


def run(effort: Effort) -> Sequence[Table]:
    """Compare with structlog writing to a file; structlog is left unconfigured."""
    with TemporaryDirectory() as directory:
        return [_in_structlog(Path(directory), effort), _in_run_logs(Path(directory), effort)]


def _in_structlog(directory: Path, effort: Effort) -> Table:
    """Time moves in a structlog that an application has configured."""
    path = directory / "structlog.jsonl"
    with path.open("w+b") as file:
        structlog.configure(**_settings(), logger_factory=structlog.BytesLoggerFactory(file))
        log = structlog.get_logger("prism.statechart")
        columns = [
            _fire(PRISM, None),
            _fire(GIVEN, log),
            Column(BARE, f"log.{_CALL}", {"log": log}),
            Column(
                LOOKED_UP,
                f"get_logger('prism.statechart').{_CALL}",
                {"get_logger": structlog.get_logger},
            ),
        ]
        try:
            found = measure(columns, effort)
            _check_lines(columns, file)
        finally:
            structlog.reset_defaults()
    return _table("logged", [PRISM, GIVEN], found)


def _in_run_logs(directory: Path, effort: Effort) -> Table:
    """Time moves in prism's own logs, next to a bare call that writes as much."""
    with ExitStack() as stack:
        file = stack.enter_context((directory / "bare.jsonl").open("wb"))
        log = structlog.wrap_logger(structlog.BytesLogger(file), **_settings())
        real = stack.enter_context(RunLog(directory / "real.jsonl"))
        simulated = stack.enter_context(RunLog(directory / "simulated.jsonl", SimulatedClock()))
        stack.enter_context(configure(directory / "configured.jsonl"))
        columns = [
            _fire(CONFIGURED, None),
            _fire(REAL_TIME, real.logger),
            _fire(SIMULATED, simulated.logger),
            Column(BARE, f"log.{_CALL}", {"log": log}),
        ]
        found = measure(columns, effort)
    return _table("logged, in prism's own files", [CONFIGURED, REAL_TIME, SIMULATED], found)


def _table(title: str, names: Sequence[str], found: list[Measurement]) -> Table:
    bare = named(BARE, found)
    claims = [claim for name in names for claim in _claims(name, named(name, found), bare)]
    return Table(title, "µs", BARE, found, claims)


def _claims(name: str, prism: Measurement, bare: Measurement) -> list[Claim]:
    return ratio(f"{name}: how many times as long as {BARE}", prism, bare, at_most=MOST)


def _check_lines(columns: Sequence[Column], file: BinaryIO) -> None:
    """Refuse a comparison in which a column writes other keys, or nothing."""
    written = []
    for column in columns:
        before = file.tell()
        exec(column.statement or "", dict(column.names))
        file.seek(before)
        written.append([sorted(orjson.loads(line)) for line in file])
    if any(len(lines) != 1 or lines != written[0] for lines in written):
        raise RuntimeError(
            "not every column wrote the same keys on one line, so their times cannot be compared"
        )


def _settings() -> dict[str, Any]:
    return {
        "processors": [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
        "wrapper_class": structlog.make_filtering_bound_logger(20),
        "cache_logger_on_first_use": True,
    }


def _fire(name: str, logger: Any) -> Column:
    names = {"chart": two_state_chart(logger), "agent": LoggedAgent(), "context": CONTEXT}
    return Column(name, "chart.fire(agent, 'go', context)", names)
