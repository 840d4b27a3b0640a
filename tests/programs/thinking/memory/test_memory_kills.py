"""A memory whose process is killed at any instant is a complete earlier or later one.

``PRISM_KILLS`` sets how often the process is killed: 20 times by default, 200 for the full proof.
"""

import logging
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prism.programs.thinking import Memory
from tests.kit import processes
from tests.programs.thinking.memory.living import live

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
KILLS = int(os.environ.get("PRISM_KILLS", "20"))

logger = logging.getLogger(__name__)


def start(path: Path) -> subprocess.Popen[str]:
    """Start a life, which goes on from where the memory is."""
    line = [sys.executable, "-m", "tests.programs.thinking.memory.living", str(path)]
    return processes.start(line, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")


def killed(path: Path, draw: random.Random) -> int:
    """Live until an instant, and return the last cycle whose commit was known to have returned."""
    with start(path) as process:
        assert process.stdout is not None
        told: list[str] = []
        if draw.random() < 0.75:
            # somewhere in the work itself
            told += [process.stdout.readline() for _ in range(draw.randrange(1, 30))]
            time.sleep(draw.random() * 0.02)
        else:
            # while it starts, opens the memory, and makes a backup
            time.sleep(draw.random() * 0.4)
        process.kill()
        told += process.stdout.read().split()
        process.wait()
    return max(map(int, told), default=0)


def test_a_killed_memory_is_complete(tmp_path: Path) -> None:
    """Whenever it is killed, what a commit returned for is there, and nothing is there in part."""
    draw = random.Random("kills")
    path = tmp_path / "memory.json"
    expected = Memory.in_memory()
    in_work = later = 0

    for number in range(KILLS):
        before = expected.cycle
        told = killed(path, draw)
        if not path.exists():
            assert told == 0
            continue

        memory = Memory.read(path)
        try:
            assert memory.faults == ()
            assert memory.cycle in (max(told, before), max(told, before) + 1)
            while expected.cycle < memory.cycle:
                live(expected)
            assert memory.to_dict() == expected.to_dict()
        finally:
            memory.close()

        in_work += memory.cycle > before
        later += memory.cycle > told > 0
        logger.info("kill %d: at cycle %d, told of %d", number, memory.cycle, told)

    # most kills came while it worked; some after the file was written and before it was told
    assert in_work >= KILLS // 2
    logger.info("%d of %d kills in work, %d after a commit", in_work, KILLS, later)
