"""The memory that the report of a large log takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.log_tables import write_log

MOST_MEGABYTES = 1000
"""The most that the report of a log of ten million lines may take, as the changelog says."""

MOST_BYTES_A_LINE = 200
"""What the memory may grow by for each line of a log; kept whole, a line takes 800 bytes."""

REPORT = """
import os
from functools import partial
from prism.analysis._reading import logs
from prism.cli import main
from prism.report._facts import run_facts
if "BYTES" in os.environ:
    run_facts.MOST_BYTES_IN_MEMORY = int(os.environ["BYTES"])
if "BLOCK" in os.environ:
    logs.read_blocks = partial(logs.read_blocks, size=int(os.environ["BLOCK"]))
try:
    main()
finally:
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def peak_of_report(log: Path, **variables: str) -> int:
    """Return the most bytes that the process has which makes the page of a log."""
    # as on a machine of a user: a worker of the tests has polars use one thread alone
    environment = {**os.environ, "POLARS_MAX_THREADS": "2", **variables}
    line = [sys.executable, "-c", REPORT, "report", str(log), "-o", str(log.with_suffix(".html"))]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) * 1024


def lines_of(log: Path) -> int:
    """Count the lines of a log, a block at a time."""
    with log.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


@pytest.mark.long
def test_memory_grows_by_little_with_the_length_of_a_log(tmp_path: Path) -> None:
    """A log that is twice as long needs more memory for its aggregates alone.

    The first fifty thousand lines may stay in memory, whose room is left out here. Blocks of a log
    are an eighth as long as they are, so that shorter logs than for them fill those that are read
    and parsed at once.
    """
    short, long = (tmp_path / f"{rounds}.jsonl" for rounds in (2, 4))
    write_log(short, 2, 1_000)
    write_log(long, 4, 1_000)
    assert lines_of(short) > 40_000
    allowed = MOST_BYTES_A_LINE * (lines_of(long) - lines_of(short))
    # memory that threads get by turns differs by when they give it back, which hides nothing: kept
    # whole, the lines would take four times what is allowed
    measured = {"BYTES": "0", "BLOCK": str(1 << 20), "MALLOC_ARENA_MAX": "1"}
    assert any(
        peak_of_report(long, **measured) - peak_of_report(short, **measured) < allowed
        for _ in range(2)
    )


@pytest.mark.long
def test_ten_million_lines_fit_in_a_gigabyte(tmp_path: Path) -> None:
    """The page of ten million lines takes at most the memory that is promised."""
    log = tmp_path / "events.jsonl"
    write_log(log, 47)
    assert lines_of(log) > 10_000_000
    assert peak_of_report(log) < MOST_MEGABYTES * 1_000_000
