"""``prism tour``: a question, answered by an experiment that needs no model and no extra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from prism.cli._screen import Screen, say
from prism.errors import InputError

_AGENTS, _FRIENDS, _WARNED = 300, 10, "warning@10"
_ARMS: Mapping[str, tuple[str, ...]] = {"no warning": (), "a warning in round 10": (_WARNED,)}
_FOLDERS: Mapping[str, str] = {"no warning": "unwarned", "a warning in round 10": "warned"}
_TITLE = "People who know the rumour, in %; thick: mean"
_CAPTION = "one of the runs: seed 1, no warning; decisions to stay count, too"

Event = Mapping[str, Any]


def tour(
    out: Annotated[Path, typer.Option(metavar="DIR")] = Path("tour"),
    seeds: Annotated[int, typer.Option(min=6, max=1000)] = 20,
) -> None:
    """Answer a question in seconds: does a warning stop a rumour? Needs no model.

    Run the rumour with and without a warning, once each for every seed. The output has the
    difference with its interval, two pictures, and what one agent did and why.

    Options:
        out: New folder for the pictures and for two of the runs.
        seeds: Number of runs in each arm.

    [bold]Example[/bold]

    prism tour
    """
    from prism import Run
    from prism.examples import Rumour

    if out.exists():
        raise InputError("already exists: name another folder with --out", path=out)

    curves: dict[str, list[list[float]]] = {arm: [] for arm in _ARMS}
    for seed in range(1, seeds + 1):
        for arm, treatments in _ARMS.items():
            run = Run(Rumour(friends=_FRIENDS), _AGENTS, seed=seed, treatments=treatments)
            results = run.keep(out / _FOLDERS[arm]).results if seed == 1 else run.run()
            curves[arm].append([100 * (known or 0) for known in results.series("reached")])

    events = _events(out / _FOLDERS["no warning"])
    _draw(out, curves, events)

    question = "[bold]Does a warning stop a rumour?[/bold]"
    asked = f"{question} {_AGENTS} people, {seeds} seeds, each run with and without it."
    told = "[bold]What one of them did, and why[/bold] (seed 1, no warning)"
    warned = _events(out / _FOLDERS["a warning in round 10"])
    _print_part(f"{asked}\n", _answer(curves))
    _print_part(f"\n{told}\n", _story(events, warned))
    _print_part("\n[bold]What to try next[/bold]\n", _next_lines(out))


def _print_part(heading: str, lines: Iterator[str]) -> None:
    Screen().print(heading)
    for line in lines:
        say(line)


def _events(folder: Path) -> list[Event]:
    from prism.files import parse_json

    text = (folder / "events.jsonl").read_text(encoding="utf-8")
    return [parse_json(line) for line in text.splitlines()]


def _draw(
    out: Path, curves: Mapping[str, Sequence[Sequence[float]]], events: Sequence[Event]
) -> None:
    """Draw the curves of all runs, and the chart with the traffic of one."""
    from prism.drawing import draw_curves, draw_svg
    from prism.examples.rumour import Person
    from prism.statechart.outline import to_outline

    made = [event for event in events if event["event"] == "statechart.transition"]
    asked = [event for event in events if event["event"] == "reasoner.decision"]
    traffic = Counter((event["from_state"], event["to_state"]) for event in made)
    # a decision to stay is no transition
    traffic.update((each["state"],) * 2 for each in asked if each["chosen"] == each["state"])
    chart = draw_svg(to_outline(Person.chart.definition), traffic, caption=_CAPTION)
    (out / "chart.svg").write_text(chart, encoding="utf-8")
    drawn = draw_curves(curves, title=_TITLE, across="round", up="%")
    (out / "curves.svg").write_text(drawn, encoding="utf-8")


def _answer(curves: Mapping[str, Sequence[Sequence[float]]]) -> Iterator[str]:
    """Describe the results of each arm, and how much they differ."""
    ends = {arm: [curve[-1] for curve in group] for arm, group in curves.items()}
    yield f"  {'know it in the end':<24}median   least    most"
    for arm, values in ends.items():
        yield f"  {arm:<24}{median(values):4.0f} %  {min(values):4.0f} %  {max(values):4.0f} %"

    without, warned = ends.values()
    differences = [second - first for first, second in zip(without, warned, strict=True)]
    low, high, confidence = median_interval(differences)
    yield ""
    yield (
        f"  Difference of a pair with one seed: {median(differences):+.0f} points (median), "
        f"{confidence:.0%} interval {low:+.0f} to {high:+.0f}."
    )
    yield "  (The median of the differences is not the difference of the medians.)"
    verdict = "No: the interval contains 0." if low <= 0 <= high else "Yes, in this world."
    yield f"  {verdict}"


def median(values: Sequence[float]) -> float:
    """Return the middle of some values, or the mean of the two in the middle."""
    ordered, half = sorted(values), len(values) // 2
    return (ordered[half] + ordered[-half - 1]) / 2


def median_interval(
    values: Sequence[float], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return an interval for a median: two of the values, and its confidence.

    The number of the n values below the median is binomial for any distribution. So the interval is
    exact, with at least the requested confidence.

    Args:
        values: At least six.
        confidence: The requested confidence.
    """
    ordered, number = sorted(values), len(values)
    outside, place = 0.0, -1
    while outside + 2 * comb(number, place + 1) / 2**number <= 1 - confidence:
        place += 1
        outside += 2 * comb(number, place) / 2**number

    return ordered[place], ordered[-place - 1], 1 - outside


def _story(events: Sequence[Event], warned: Sequence[Event]) -> Iterator[str]:
    """Tell the story of an agent that heard it about three times and tired in the end."""
    name = _who_tired(events)
    own = [each for each in events if each.get("agent_id") == name]
    trust = next(each["attributes"]["trust"] for each in own if each["event"] == "agent.joined")
    yield f"  {name} believes what a friend says with a chance of {trust:.0%}."
    for each in own:
        if told := _told(each):
            yield f"  round {each['round']:>2}: {told}"

    spread = any(
        each.get("agent_id") == name and each.get("to_state") == "spreader" for each in warned
    )
    came = "tells the rumour, too" if spread else "never tells the rumour"
    yield f"  With the warning, and the same random numbers, {name} {came}."


def _who_tired(events: Sequence[Event]) -> str:
    """Return an agent that lost interest in the end, with about three decisions before."""
    asked = Counter(each["agent_id"] for each in events if each["event"] == "reasoner.decision")
    tired = {each["agent_id"] for each in events if each.get("trigger") == "tires"}
    return str(min(tired & set(asked), key=lambda each: (abs(asked[each] - 3), each)))


def _told(event: Event) -> str | None:
    """Describe an agent's decision, or its loss of interest."""
    if event.get("trigger") == "tires":
        return "told a friend who knew it already, and lost interest"
    if event["event"] != "reasoner.decision":
        return None

    friend, chosen = event["context"]["agent_id"], event["chosen"]
    did = "believed it, and passed it on" if chosen == "spreader" else "did not believe it"
    return f"heard it from {friend}, {did} (chance {event['probabilities'][chosen]:.0%})"


def _next_lines(out: Path) -> Iterator[str]:
    unwarned = quote(str(out / _FOLDERS["no warning"]))
    lines = {
        f"open {quote(str(out / 'curves.svg'))}": "the curves of all runs",
        f"open {quote(str(out / 'chart.svg'))}": "the chart, with its traffic in one of them",
        f"prism log decision {unwarned}": "every decision, with its chances",
        "prism world show rumour": "what this world consists of",
        f"prism run rumour --agents {_AGENTS} --set friends=4 --out runs/four": (
            "the same with fewer friends"
        ),
        "prism world list": "other worlds to run",
    }
    return (f"  {line:<61}  {why}" for line, why in lines.items())
