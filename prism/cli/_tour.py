"""``prism tour``: a question, answered by an experiment that needs no model and no extra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from statistics import median
from typing import Annotated, Any

import typer

from prism.cli._screen import print_heading, say
from prism.errors import InputError

_AGENTS = 300
_ARMS = {"no warning": ("unwarned", ()), "a warning in round 10": ("warned", ("warning@10",))}
_TITLE = "People who know the rumour, in %; thick: mean"
_CAPTION = "one of the runs: seed 1, no warning; decisions to stay count, too"

Events = Sequence[Mapping[str, Any]]


def tour(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="New folder for the pictures and two of the runs.")
    ] = Path("tour"),
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs in each arm.")] = 20,
) -> None:
    """Answer a question in seconds: does a warning stop a rumour? Needs no model.

    Run the rumour with and without a warning, once each for every seed. The output has the
    difference, two pictures, and what one agent did and why.

    **Example**

    * `prism tour`
    """
    from prism import Run
    from prism.examples import Rumour

    if out.exists():
        raise InputError("already exists: name another folder with --out", path=out)

    curves: dict[str, list[list[float]]] = {arm: [] for arm in _ARMS}
    for seed in range(1, seeds + 1):
        for arm, (folder, treatments) in _ARMS.items():
            run = Run(Rumour(friends=10), _AGENTS, seed=seed, treatments=treatments)
            results = run.keep(out / folder).results if seed == 1 else run.run()
            curves[arm].append([100 * (share or 0) for share in results.series("reached")])

    events, warned = (_events(out / folder) for folder, _ in _ARMS.values())
    _draw(out, curves, events)
    parts = {
        f"Does a warning stop a rumour? {_AGENTS} people, {seeds} seeds.": _answer(curves),
        "What one of them did, and why (seed 1, no warning)": _story(events, warned),
        "What to try next": _next_lines(out),
    }
    for heading, lines in parts.items():
        print_heading(heading)
        for line in lines:
            say(f"  {line}")
        say("")


def _events(folder: Path) -> Events:
    from prism.files import parse_json

    text = (folder / "events.jsonl").read_text(encoding="utf-8")
    return [parse_json(line) for line in text.splitlines()]


def _draw(out: Path, curves: Mapping[str, Sequence[Sequence[float]]], events: Events) -> None:
    """Draw the curves of all runs, and the chart with the traffic of one."""
    from prism.drawing import draw_curves, draw_svg
    from prism.examples.rumour import Person
    from prism.statechart.outline import to_outline

    made = [event for event in events if event["event"] == "statechart.transition"]
    decisions = [event for event in events if event["event"] == "reasoner.decision"]
    traffic = Counter((event["from_state"], event["to_state"]) for event in made)
    # a decision to stay is no transition
    traffic.update((each["state"],) * 2 for each in decisions if each["chosen"] == each["state"])
    chart = draw_svg(to_outline(Person.chart.definition), traffic, caption=_CAPTION)
    (out / "chart.svg").write_text(chart, encoding="utf-8")
    drawn = draw_curves(curves, title=_TITLE, across="round", up="%")
    (out / "curves.svg").write_text(drawn, encoding="utf-8")


def _answer(curves: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[str]:
    """Describe the results of each arm, and how much they differ."""
    ends = {arm: [curve[-1] for curve in group] for arm, group in curves.items()}
    yield f"{'know it in the end':<24}median   least    most"
    for arm, values in ends.items():
        yield f"{arm:<24}{median(values):4.0f} %  {min(values):4.0f} %  {max(values):4.0f} %"

    without, warned = ends.values()
    differences = [second - first for first, second in zip(without, warned, strict=True)]
    fewer = sum(difference < 0 for difference in differences)
    yield (
        f"With the warning, fewer people know it in {fewer} of {len(differences)} pairs of the "
        f"same seed, by {-median(differences):.0f} points (median)."
    )


def _story(events: Events, warned: Events) -> Iterator[str]:
    """Tell the story of an agent that heard it about three times and tired in the end."""
    decisions = Counter(each["agent_id"] for each in events if each["event"] == "reasoner.decision")
    tired = {each["agent_id"] for each in events if each.get("trigger") == "tires"}
    name = min(tired & set(decisions), key=lambda each: (abs(decisions[each] - 3), each))
    for each in events:
        if each.get("agent_id") != name:
            continue
        if each["event"] == "agent.joined":
            yield f"{name} believes a friend with a chance of {each['attributes']['trust']:.0%}."
        elif each.get("trigger") == "tires":
            yield f"round {each['round']:>2}: told a friend who knew it already, and lost interest"
        elif each["event"] == "reasoner.decision":
            friend, chosen = each["context"]["agent_id"], each["chosen"]
            did = "believed it, and passed it on" if chosen == "spreader" else "did not believe it"
            chance = f"chance {each['probabilities'][chosen]:.0%}"
            yield f"round {each['round']:>2}: heard it from {friend}, {did} ({chance})"

    theirs = [each for each in warned if each.get("agent_id") == name]
    does = "tells" if any(each.get("to_state") == "spreader" for each in theirs) else "never tells"
    yield f"With the warning, and the same random numbers, {name} {does} the rumour."


def _next_lines(out: Path) -> Iterator[str]:
    lines = {
        f"open {quote(str(out / 'curves.svg'))}": "the curves of all runs",
        f"open {quote(str(out / 'chart.svg'))}": "the chart, with its traffic in one of them",
        f"prism log decision {quote(str(out / 'unwarned'))}": "every decision, with its chances",
        "prism world show rumour": "what this world consists of",
        "prism run rumour --agents 300 --set friends=4": "the same with fewer friends",
        "prism world init Party": "a world of your own to begin from",
    }
    return (f"{line:<48}  {why}" for line, why in lines.items())
