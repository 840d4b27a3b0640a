"""Run a fake model server as a program: ``python -m prism.testing --latency 0.1 --slots 16``.

It is a `FakeOllama`, or with ``--dialect openai`` a `FakeOpenAI`.

It prints its address, serves until its standard input is closed, and then prints its counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from math import log
from random import Random
from statistics import NormalDist

from prism.testing._server.fake_ollama import FakeOllama
from prism.testing._server.fake_openai import FakeOpenAI

_SERVERS: dict[str, type[FakeOllama | FakeOpenAI]] = {"ollama": FakeOllama, "openai": FakeOpenAI}


def main() -> None:
    """Serve until standard input ends, then print the counts as one line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m prism.testing", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds for each answer")
    parser.add_argument(
        "--tail",
        type=float,
        default=1.0,
        help="ratio of the 99th percentile to the median, --latency, for lognormal times",
    )
    parser.add_argument(
        "--slots", type=int, default=None, help="number of concurrent answers; no limit by default"
    )
    parser.add_argument(
        "--dialect", choices=sorted(_SERVERS), default="ollama", help="API of the server"
    )
    options = parser.parse_args()
    for name, least in (("latency", 0), ("tail", 1), ("slots", 1)):
        value = getattr(options, name)
        if value is not None and not value >= least:
            parser.error(f"--{name} must be {least} or more, got {value:g}")

    varies = options.tail > 1 and options.latency > 0
    latency = _latency(options.latency, options.tail) if varies else options.latency
    kind = _SERVERS[options.dialect]
    with kind(latency=latency, slots=options.slots, remember=0) as server:
        sys.stdout.write(server.host + "\n")
        sys.stdout.flush()

        sys.stdin.read()

    # only a closed server has counted all that it answered
    counts = {
        "questions": server.asked,
        "busy": server.busy_seconds,
        "most_at_once": server.most_at_once,
    }
    sys.stdout.write(json.dumps(counts) + "\n")


def _latency(median: float, tail: float) -> Callable[[], float]:
    """Return a maker of lognormal seconds, the same ones in each run."""
    numbers = Random("latency")
    sigma = log(tail) / NormalDist().inv_cdf(0.99)

    return lambda: numbers.lognormvariate(log(median), sigma)


if __name__ == "__main__":
    main()
