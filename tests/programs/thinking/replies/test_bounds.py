"""How long a reply takes to be read, and how much memory: the longest, and the worst known."""

import json
import subprocess
import sys
from time import process_time
from typing import Any

import pytest

from prism.programs.thinking._replies import MOST_CHARACTERS, read_reply
from tests.kit.agent_replies import HOSTILE, LONGEST

MOST_SECONDS = 0.05
MOST_LOOPS = 10
"""That many loops of `MEASURE` take 50 ms where one takes 5 ms, and longer on a slower machine."""
MOST_MEGABYTES = 300

MEASURE = """
import json, resource, sys
from time import process_time
from prism.programs.thinking._replies import read_reply

def seconds_of(work):
    start = process_time()
    work()
    return process_time() - start

def loop():
    sum(number * number for number in range(100_000))

def least_loops(text):
    times = [(seconds_of(lambda: read_reply(text)), seconds_of(loop)) for _ in range(5)]
    return min(reading for reading, _ in times) / min(looping for _, looping in times)

texts = json.loads(sys.stdin.read())
loops = {name: least_loops(text) for name, text in texts.items()}
try:
    # what the process that began this one took does not count here
    lines = open("/proc/self/status").read().splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
except (OSError, StopIteration):
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"loops": loops, "megabytes": kilobytes / 1024}))
"""


def measured(texts: dict[str, str]) -> dict[str, Any]:
    """Return how long a process of its own takes to read texts, in loops, and its memory."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_longest_replies_are_meant() -> None:
    """The hostile replies are as long as what is read, and most are not shorter."""
    assert LONGEST == MOST_CHARACTERS
    assert all(len(text) <= LONGEST for text in HOSTILE.values())
    assert sum(len(text) == LONGEST for text in HOSTILE.values()) >= len(HOSTILE) - 1


@pytest.mark.slow
def test_time_grows_no_faster_than_the_reply() -> None:
    """No hostile reply takes as long as one that is read in quadratic time would."""
    for family, reply in HOSTILE.items():
        start = process_time()
        read_reply(reply)
        # wide, since other processes share the caches; quadratic time would be seconds
        assert process_time() - start < 10 * MOST_SECONDS, family


@pytest.mark.long
def test_no_reply_takes_over_fifty_milliseconds() -> None:
    """Each hostile reply of 200,000 characters is read in the CPU time of ten plain loops."""
    loops = measured(HOSTILE)["loops"]
    assert {name: took for name, took in loops.items() if took >= MOST_LOOPS} == {}


@pytest.mark.long
@pytest.mark.parametrize("family", HOSTILE)
def test_no_reply_takes_much_memory(family: str) -> None:
    """A process that reads a hostile reply stays under 300 MB, all of Python included."""
    assert measured({family: HOSTILE[family]})["megabytes"] < MOST_MEGABYTES
