"""A fire that is announced as a line of JSON in a file, next to a bare structlog call with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import orjson
import structlog

from tests.benchmarks.contenders import MixinAgent, two_state_chart
from tests.benchmarks.harness import Claim, Column, Effort, Measurement, Table, measure, named, ratio

PRISM, GIVEN = "prism, structlog's own logger", "prism, chart made with logger=log"
BARE, LOOKED_UP = "log.info(...)", "get_logger().info(...)"
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


class LoggedAgent(MixinAgent):
    """An agent with a name for the log."""

    agent_id = "agent_1"


def run(effort: Effort) -> Sequence[Table]:
    """Compare with structlog writing to a temporary file; structlog is left as it was by default."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "run.jsonl"
        with path.open("wb") as file:
            _configure(file)
            try:
                found = measure(_columns(), effort)
            finally:
                structlog.reset_defaults()
        _check_lines(path)
    bare = named(BARE, found)
    claims = [claim for name in (PRISM, GIVEN) for claim in _claims(name, named(name, found), bare)]
    return [Table("logged", "µs", BARE, found, claims)]


def _claims(name: str, prism: Measurement, bare: Measurement) -> list[Claim]:
    return ratio(f"{name}: how many times as long as {BARE}", prism, bare)


def _check_lines(path: Path) -> None:
    """Refuse a comparison of unequal lines; the first was written by prism, the last by a bare call."""
    with path.open("rb") as file:
        first = last = file.readline()
        for line in file:
            last = line
    if set(orjson.loads(first)) != set(orjson.loads(last)):
        raise RuntimeError("prism and the bare call logged different keys, so their times cannot be compared")


def _configure(file: BinaryIO) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(serializer=orjson.dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        logger_factory=structlog.BytesLoggerFactory(file),
        cache_logger_on_first_use=True,
    )


def _columns() -> list[Column]:
    log = structlog.get_logger("prism.statechart")
    call = f"info('statechart.transition', {', '.join(f'{key}={value!r}' for key, value in _KEYS.items())})"
    return [
        _fire(PRISM, None),
        _fire(GIVEN, log),
        Column(BARE, f"log.{call}", {"log": log}),
        Column(LOOKED_UP, f"get_logger('prism.statechart').{call}", {"get_logger": structlog.get_logger}),
    ]


def _fire(name: str, logger: Any) -> Column:
    names = {"chart": two_state_chart(logger), "agent": LoggedAgent(), "context": CONTEXT}
    return Column(name, "chart.fire(agent, 'go', context)", names)
