"""The last line of a command on a terminal: what to look at next."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

_OF_RUN = "prism watch {run} shows it in the browser; prism log states {run} counts its agents"

_NEXT = {
    "run": _OF_RUN,
    "simulate": "prism log cascades {run} shows how posts spread; prism watch {run} the whole run",
    "resume": _OF_RUN,
    "replay": _OF_RUN,
    "status": "prism resume RUN continues a run that was stopped",
    "report": "prism compare RUN OTHER compares it with other runs",
    "log": "prism log --help lists all tables; prism report RUN makes one page of them",
    "batch": "prism compare {run} compares its arms",
    "compare": "prism compare --help explains how to write figures and tables for a paper",
    "rerun": "prism compare RUN {run} shows what the change did",
    "sensitivity": "prism fit --help explains how to find parameters that meet given figures",
    "fit": "prism run WORLD --set NAME=VALUE runs the world with the fitted parameters",
    "calibrate": "prism run WORLD --policy FILE decides by this policy",
    "world": "prism run WORLD --out runs/first runs it; prism watch WORLD lets you play with it",
    "chart": "prism chart --help lists what else you can do with a chart",
    "workflow": "prism run FILE --model NAME runs the agent",
    "think": "prism run FILE --memory FILE --model NAME lets the agent think",
    "doctor": "prism run vaccination --model NAME --max-calls 100 asks this model",
}
"""What to look at after each command; ``{run}`` is the folder that it wrote or read."""

_KEEP = "add --out runs/first to keep a run, so that you can watch, resume and compare it"


def next_line(arguments: Sequence[str]) -> str | None:
    """Return what to look at after a command, or None if it says so itself.

    Args:
        arguments: The command that has succeeded, with its arguments.
    """
    if not arguments or {"--json", "--help"} & {*arguments}:
        return None

    # that command names the files that it wrote
    if [*arguments[:2]] == ["think", "init"]:
        return None

    line = _NEXT.get(arguments[0])
    # with the name of the world, the line can be copied
    if line is not None and arguments[0] == "world" and len(arguments) > 2:
        line = line.replace("WORLD", quote(arguments[2]))
    if line is None or "{run}" not in line:
        return line

    run = _folder(arguments)
    return _KEEP if run is None else line.format(run=run)


def tell_next(arguments: Sequence[str]) -> None:
    """Print what to look at next, if the output is a terminal."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        from prism.cli._screen import note

        line = next_line(arguments)
        if line is not None:
            note(f"next: {line}")


def _folder(arguments: Sequence[str]) -> str | None:
    """Return the folder that a command wrote or read."""
    for place, each in enumerate(arguments):
        name, _, value = each.partition("=")
        if name in ("--out", "-o", "--resume"):
            return quote(value or arguments[min(place + 1, len(arguments) - 1)])

    return next((quote(each) for each in arguments[1:] if Path(each).is_dir()), None)
