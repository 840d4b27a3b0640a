"""``prism chart``: a chart as tables, as text for other tools, and what it does to an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._screen import counted, print_findings, print_json, print_table, say, write_bytes
from prism.errors import InputError, UnknownStateError

if TYPE_CHECKING:
    from prism.drawing import Diagram
    from prism.statechart import Statechart

_MADE = ("moves", "stays")
"""Outcomes in which a transition is made; a loop stays in its state."""

chart = command_group("Show, export and check charts.")

ChartArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHART",
        help="A built-in chart (social_media, social_feed, or either with _acts), a file (.json "
        "in prism's format, .scxml, or .yaml for a workflow), or package.module:attribute "
        "(also file.py:attribute), which may be a chart, a function that returns one, or a "
        "class of a world's agents.",
    ),
]
ChartFormat = Annotated[
    Literal["mermaid", "dot", "scxml", "json", "svg"],
    typer.Option("--format", help="Output format."),
]


@chart.command()
def show(chart: ChartArgument) -> None:
    """Show the states and transitions as tables.

    **Example**

    * `prism chart show social_media`
    """
    from prism.cli._chart_argument import chart_from
    from prism.statechart.outline import label_of, to_outline
    from prism.statechart.states import state_text
    from prism.statechart.transitions import target_text

    statechart = chart_from(chart)
    outline, written = to_outline(statechart.definition), statechart.transitions
    states = [name for name in outline.states if name not in outline.histories]
    numbers = counted(len(states), "state"), counted(len(written), "transition")
    say(f"{statechart.name}: {', '.join(numbers)}")
    print_table(((name, ", ".join(_notes_on(name, outline))) for name in states), "state", "")
    rows = []
    for each in written:
        label = label_of(each) + (" (internal)" if each.internal else "")
        rows.append((state_text(each.source), label, target_text(each.target)))
    if rows:
        print_table(rows, "source", "trigger [guard] / action", "target")


@chart.command()
def export(chart: ChartArgument, as_format: ChartFormat, out: OutFile = None) -> None:
    """Export a chart to Mermaid, Graphviz, SCXML, prism's JSON or SVG.

    **Examples**

    * `prism chart export social_media --format mermaid`

    * `prism chart export mine.json --format svg -o mine.svg`
    """
    from prism.cli._chart_argument import chart_from

    write_chart(chart_from(chart), as_format, out, [Path(chart)])


@chart.command()
def check(chart: ChartArgument, as_json: AsJson = False) -> None:
    """List probable mistakes in a chart, one on each line.

    The exit status is 0 if there are none, 1 if there are some, and 2 if the chart cannot be read.

    **Example**

    * `prism chart check package.module:my_chart`
    """
    from prism.cli._chart_argument import chart_from
    from prism.statechart.states import state_text

    statechart = chart_from(chart)
    findings = statechart.check()

    listing = [
        {"kind": each.kind, "state": state_text(each.state), "message": each.message}
        for each in findings
    ]
    lines = [f"{each.kind}: {each}" for each in findings]
    print_findings(lines, {"chart": statechart.name, "findings": listing}, as_json=as_json)


@chart.command()
def explain(
    chart: ChartArgument,
    trigger: Annotated[str, typer.Argument(metavar="TRIGGER", help="Name of the event.")],
    state: Annotated[str, typer.Option(help="State of the agent.")],
    context: Annotated[
        str | None, typer.Option(metavar="JSON", help="Context of the event, for the guards.")
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="JSON", help="Fields of the agent, as a JSON object.")
    ] = "{}",
    as_json: AsJson = False,
) -> None:
    """Show every transition that an event could cause, the result of its guard, and the outcome.

    The exit status is 0 if a transition would be made, 1 if not, and 2 if the input is wrong.

    **Examples**

    * `prism chart explain social_media decides --state evaluating --context 0.9`

    * `prism chart explain mine.json compose_done --state composing --agent '{"age": 30}'`
    """
    from prism.cli._chart_argument import chart_from

    statechart = chart_from(chart)
    payload = [] if context is None else [_json("--context", context)]
    subject = _agent(statechart, state, _json("--agent", agent))
    explanation = statechart.explain(subject, trigger, *payload)
    if as_json:
        print_json(explanation.to_dict())
    else:
        for line in str(explanation).splitlines():
            say(line)

    if explanation.outcome not in _MADE:
        raise typer.Exit(1)


def _notes_on(name: str, outline: Diagram) -> Iterator[str]:
    """Yield what a table says of a state: what it is, and inside which state."""
    if name == outline.initial or any(name in box.initial for box in outline.boxes.values()):
        yield "initial"
    kinds = {"decision": outline.decision_states, "final": outline.final_states}
    yield from (kind for kind, states in kinds.items() if name in states)
    yield from (f"in {box}" for box, content in outline.boxes.items() if name in content.inside)
    yield from outline.notes.get(name, ())


def _json(option: str, text: str) -> Any:
    from prism.files import parse_json

    try:
        return parse_json(text)
    except InputError as error:
        raise InputError(f"{option} {error.problem}") from None


def _agent(chart: Statechart[Any], state: str, fields: Any) -> Any:
    """Return an agent with these fields, a social one if the chart is theirs."""
    from prism.agents import SocialAgent
    from prism.statechart import AgentState

    try:
        member = chart.state_of(state)
    except UnknownStateError as error:
        raise InputError(f"--state: {error}") from None
    if not isinstance(fields, Mapping) or "state" in fields:
        raise InputError("--agent must be a JSON object of fields, without a state")
    kind: Any = SocialAgent if chart.state_type is AgentState else SimpleNamespace
    agent = kind(agent_id="agent", state=member)
    for name, value in fields.items():
        setattr(agent, name, value)
    return agent


def write_chart(
    chart: Statechart[Any], as_format: str, out: Path | None, reads: Sequence[Path]
) -> None:
    """Write a chart in a format to a file, or to standard output; see `write_bytes`."""
    write_bytes(f"{format(chart, as_format).rstrip()}\n".encode(), out, reads)
