"""``prism chart``: a chart as tables, as text for other tools, and what it does to an agent."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._output import write_bytes
from prism.cli._screen import note, pour_json, print_findings, print_table, say
from prism.errors import InputError, PrismError, UnknownStateError

if TYPE_CHECKING:
    from prism.agents import SocialAgent
    from prism.drawing import Diagram
    from prism.statechart import Statechart, Transition

_MADE = ("moves", "stays")
"""Outcomes in which a transition is made; a loop stays in its state."""

charts = command_group("Show, export and check charts.")

ChartArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHART",
        help="A built-in chart (social_media, social_feed, or either with _acts), a file (.json "
        "in prism's format, .scxml, or .yaml for a workflow), or package.module:attribute "
        "(also file.py:attribute), which may be a chart, a function that returns one, or a "
        "class of a world's agents.",
        show_default=False,
    ),
]
ChartFormat = Annotated[
    Literal["mermaid", "dot", "scxml", "json", "svg", "png", "pdf"],
    typer.Option("--format", help="Output format; png and pdf need the extra report."),
]


@charts.command()
def show(chart: ChartArgument) -> None:
    """Show the states and transitions as tables.

    [bold]Example[/bold]

    prism chart show social_media
    """
    from prism.cli._chart_argument import chart_from
    from prism.statechart.outline import to_outline

    found = chart_from(chart)
    outline, written = to_outline(found.definition), found.definition.written
    states = [name for name in outline.states if name not in outline.marks]
    say(f"{found.name}: {len(states)} states, {len(written)} transitions")
    _print_states(states, outline)
    if written:
        _print_transitions(states, written)
    else:
        say("No transitions.")
    if found.needs:
        say(f"The agent needs these attributes: {', '.join(found.needs)}")


@charts.command()
def export(chart: ChartArgument, as_format: ChartFormat, out: OutFile = None) -> None:
    """Export a chart to Mermaid, Graphviz, SCXML, prism's JSON or a picture.

    [bold]Examples[/bold]

    prism chart export social_media --format mermaid

    prism chart export mine.json --format svg -o mine.svg

    prism chart export social_media --format pdf -o social.pdf
    """
    from prism.cli._chart_argument import chart_from

    write_chart(chart_from(chart), as_format, out, [Path(chart)])


@charts.command()
def check(
    chart: ChartArgument,
    as_json: AsJson = False,
) -> None:
    """List probable mistakes in a chart, one on each line.

    A chart may have no time-outs on purpose, so only a note mentions it.

    The exit status is 0 if there are none, 1 if there are some, and 2 if the chart cannot be read.

    [bold]Example[/bold]

    prism chart check package.module:my_chart
    """
    from prism.cli._chart_argument import chart_from
    from prism.statechart.states import state_text

    found = chart_from(chart)
    findings = found.check()
    never_moves = not found.timeouts and not any(
        each.trigger in (None, "timeout") or each.after is not None or each.rate is not None
        for each in (*found.transitions, *found.definition.written)
    )
    if never_moves and not as_json:
        note("the chart has no time-outs: an agent stays in a state until an event moves it")

    listing = [
        {"kind": each.kind, "state": state_text(each.state), "message": each.message}
        for each in findings
    ]
    lines = [f"{each.kind}: {each}" for each in findings]
    print_findings(lines, {"chart": found.name, "findings": listing}, as_json=as_json)


@charts.command()
def explain(
    chart: ChartArgument,
    trigger: Annotated[str, typer.Argument(metavar="TRIGGER", show_default=False)],
    state: Annotated[str, typer.Option("--state", metavar="STATE")],
    context: Annotated[str | None, typer.Option("--context", metavar="JSON")] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="JSON")] = "{}",
    as_json: AsJson = False,
) -> None:
    """Show every transition that an event could cause, the result of its guard, and the outcome.

    The exit status is 0 if a transition would be made, 1 if not, and 2 if the input is wrong.

    Options:
        trigger: Name of the event.
        state: State of the agent.
        context: Context of the event, which is passed to guards.
        agent: Fields of the agent, as a JSON object. For a chart of social agents, the agent is a
            social agent.

    [bold]Examples[/bold]

    prism chart explain social_media decides --state evaluating --context 0.9

    prism chart explain social_media compose_done --state composing --agent
    '{"pending_action": "reply"}'
    """
    from prism.cli._chart_argument import chart_from

    found = chart_from(chart)
    payload = None if context is None else _json("--context", context)
    subject = _agent(found, state, _json("--agent", agent))
    explanation = found.explain(subject, trigger, payload)
    if as_json:
        pour_json(explanation.to_dict())
    else:
        for line in str(explanation).splitlines():
            say(line)

    if explanation.outcome not in _MADE:
        raise typer.Exit(1)


# tables


def _print_states(states: Sequence[str], outline: Diagram) -> None:
    """Print states with what lies inside them, indented."""
    around = {name: box for box, found in outline.boxes.items() for name in found.inside}
    initial = {outline.initial, *(name for box in outline.boxes.values() for name in box.initial)}
    parallel = {name for name, box in outline.boxes.items() if box.is_parallel}
    kinds: dict[str, Collection[str | None]] = {
        "initial": initial,
        "parallel": parallel,
        "decision": outline.decision_states,
        "final": outline.final_states,
    }

    def row(name: str) -> tuple[str, str]:
        depth, box = 0, name
        while box in around:
            depth, box = depth + 1, around[box]
        notes = [kind for kind, names in kinds.items() if name in names]
        return "  " * depth + name, ", ".join([*notes, *outline.notes.get(name, ())])

    print_table(map(row, states), "state", "")


def _print_transitions(states: Sequence[str], written: Sequence[Transition[Any]]) -> None:
    """Print transitions as they were written, those of one source together."""
    from prism.statechart.outline import label_of
    from prism.statechart.states import state_text
    from prism.statechart.transitions import is_any_state, target_text

    # a wildcard and a state may have the same text
    places = {(False, text): place for place, text in enumerate(states)}

    def source_of(each: Transition[Any]) -> tuple[bool, str]:
        return is_any_state(each.source), state_text(each.source)

    rows = []
    ordered = sorted(written, key=lambda each: places.get(source_of(each), len(places)))
    for (_, text), own in groupby(ordered, source_of):
        for each in own:
            label = label_of(each) + (" (internal)" if each.internal else "")
            rows.append((text, label, target_text(each.target)))
            text = ""  # named once, above all of its transitions

    print_table(rows, "source", "trigger [guard] / action", "target")


# agents


def _json(option: str, text: str) -> Any:
    from prism.files import parse_json

    try:
        return parse_json(text)
    except InputError as error:
        raise InputError(f"{option} {error.problem}") from None


def _agent(chart: Statechart[Any], state: str, fields: Any) -> Any:
    """Return a social agent if the chart is theirs, else an object with just these fields."""
    from prism.statechart import AgentState
    from prism.statechart.states import state_text

    states = {state_text(member): member for member in chart.definition.states}
    try:
        member = chart.state_of(state)
    except UnknownStateError:
        problem = f"chart {chart.name!r} has no state {state!r}: use one of {', '.join(states)}"
        raise InputError(f"--state: {problem}") from None

    if not isinstance(fields, Mapping):
        raise InputError(f"--agent must be a JSON object of fields, got {fields!r}")
    if "state" in fields:
        raise InputError("--agent must not have a 'state': use --state")

    named = {"agent_id": "agent", **fields}
    if set(states) <= set(AgentState) or set(AgentState) <= set(states):
        return _social_agent(chart, member, named)

    return SimpleNamespace(**named, state=member)


def _social_agent(chart: Statechart[Any], state: Any, fields: dict[str, Any]) -> SocialAgent:
    from prism.agents import SocialAgent

    class Agent(SocialAgent):
        state_type = chart.state_type

    pending = fields.pop("pending_action", None)
    try:
        made = Agent(**fields, state=state)
    except PrismError as error:
        raise InputError(f"--agent: {error}") from error
    except TypeError as error:  # a field that does not exist, or a value of a wrong type
        raise InputError(f"--agent does not describe a social agent: {error}") from error

    made.pending_action = pending

    return made


# files


def write_chart(
    chart: Statechart[Any], as_format: ChartFormat, out: Path | None, reads: Sequence[Path]
) -> None:
    """Write a chart to a file, or to standard output.

    Args:
        chart: The chart.
        as_format: Its format.
        out: The file; None is standard output.
        reads: What the command reads.

    Raises:
        InputError: If a picture would go to a terminal, or the file cannot be written, is read, or
            belongs to a run.
        MissingExtraError: If the extra ``report`` is not installed, which the picture takes.
    """
    if as_format == "png" or as_format == "pdf":
        _write_picture(chart, as_format, out, reads)
        return

    text = format(chart, as_format)
    text = text if text.endswith("\n") else text + "\n"
    write_bytes(text.encode(), out, reads)


def _write_picture(
    chart: Statechart[Any],
    as_format: Literal["png", "pdf"],
    out: Path | None,
    reads: Sequence[Path],
) -> None:
    if out is None and sys.stdout.isatty():
        raise InputError(
            f"--format {as_format} cannot be shown on a terminal: name a file with --out, or "
            "pipe the output"
        )

    # says which extra it takes, if that is missing
    import prism.report  # noqa: F401
    from prism.report._drawing import in_format

    write_bytes(in_format(chart.to_svg(), as_format), out, reads)
