"""A fake model server as a program: ``python -m tests.benchmarks.model_server LATENCY TAIL SLOTS``.

It prints its address, serves until its standard input is closed, and then prints its counts.
"""

from __future__ import annotations

import json
import sys
from math import log
from random import Random
from statistics import NormalDist

from prism.testing import FakeOllama


def main() -> None:
    """Serve until standard input ends, then print the counts as one line of JSON.

    The times of answers are lognormal: the latency is their median, and the tail the ratio of the
    99th percentile to it.
    """
    median, tail, slots = map(float, sys.argv[1:])
    numbers, sigma = Random("latency"), log(tail) / NormalDist().inv_cdf(0.99)
    latency = (lambda: numbers.lognormvariate(log(median), sigma)) if tail > 1 else median
    busy: list[float] = []

    def timed() -> float:
        busy.append(latency() if callable(latency) else latency)
        return busy[-1]

    with FakeOllama(latency=timed, slots=int(slots)) as server:
        sys.stdout.write(server.host + "\n")
        sys.stdout.flush()

        sys.stdin.read()

    # only a closed server has counted all that it answered
    counts = {"questions": server.asked, "busy": sum(busy)}
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
