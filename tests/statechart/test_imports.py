"""What a program pays that imports the engine: nothing of the reasoners, until it names one."""

import subprocess
import sys

import pytest

ROOMS = {"_lazy", "_numbers", "_version", "errors", "statechart", "telemetry"}
"""The rooms of prism from which ``import prism.statechart`` may load something."""

LATER = {"_document", "_extending", "_scxml", "inspection", "outline", "reasoner"}
"""Modules of its own that it loads when they are first used."""


HEAVY = {"ollama", "httpx", "pydantic", "duckdb", "numpy", "structlog", "rich"}


def run_python(code: str) -> str:
    """Return what code prints in an interpreter of its own, in which nothing is imported yet."""
    line = [sys.executable, "-c", code]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_chart_loads_only_the_engine() -> None:
    """Nothing heavy, no other rooms, nothing that inspects or draws; and it sets up no logging."""
    modules = run_python(
        "import logging, sys, prism.statechart\n"
        "handlers = [log.handlers for log in logging.root.manager.loggerDict.values()\n"
        "            if isinstance(log, logging.Logger)]\n"
        "assert {type(each) for some in handlers for each in some} <= {logging.NullHandler}\n"
        "assert not logging.root.handlers\n"
        "print(*sys.modules)"
    ).split()
    assert HEAVY.isdisjoint(modules)
    loaded = [name for name in modules if name.startswith("prism.")]
    assert {name.split(".")[1] for name in loaded} == ROOMS
    assert LATER.isdisjoint(name.rpartition(".")[2] for name in loaded)


def test_a_reasoner_is_loaded_when_it_is_named() -> None:
    """The reasoner of the contract comes by attribute and by star, also as the first use."""
    assert run_python(
        "import prism.statechart\n"
        "print(prism.statechart.Reasoner.__name__)\n"
        "from prism.statechart import *\n"
        "print(prism.reasoner.Reasoner is Reasoner)"
    ).split() == ["Reasoner", "True"]
