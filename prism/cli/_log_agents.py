"""``prism log agents``, ``interactions`` and ``why``: a run's log, agent by agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._log import Format, Out, Runs, make, print_notes, show
from prism.cli._output import output_file, standard_output
from prism.cli._table_output import TableFormat, choose_format, write
from prism.drawing import printable
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import RunLogs

# What a reader of edge lists would take for the end of a name, of a line, or for a comment.
_NOT_IN_EDGES = ("\t", "\n", "\r", "#")

_SHOWN_OF_FEED = (
    *("agent_id", "archetype", "state", "weighed", "decisions", "fallbacks"),
    *("posts", "replies", "reshares", "likes"),
)


class NetworkFormat(StrEnum):
    """The formats of a table, and two of a network."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    EDGES = "edges"
    GRAPHML = "graphml"


OfNetwork = Annotated[
    NetworkFormat | None,
    typer.Option(
        "--format",
        help="Format to write; by default that of the file's name, else a table to read. edges is "
        "one line for each pair: who, whose, how often, with tabs between them.",
    ),
]


def agents(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Describe every agent: what it is, and how much it did."""
    from prism.analysis import agents as describe

    chosen = choose_format(as_format, out)
    table = make(runs, describe)
    shown = [name for name in table.columns if name != "display_name"]
    if "archetype" in table.columns:  # of a feed, which has more columns than fit
        shown = [name for name in ("arm", *_SHOWN_OF_FEED) if name in table.columns]

    write(table, chosen, out, shown, reads=runs)


def follows(
    runs: Runs,
    in_all: Annotated[
        bool, typer.Option("--in-all", help="Describe the network of each run in one row.")
    ] = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """List who follows whom, from a log of a feed with the parameter logs_follows.

    [bold]Example[/bold]

    prism log follows runs/first --in-all
    """
    from prism.analysis import follow_networks
    from prism.analysis import follows as pairs

    show(runs, follow_networks if in_all else pairs, as_format, out)


def interactions(runs: Runs, as_format: OfNetwork = None, out: Out = None) -> None:
    """Count who replied to, reshared and liked whose posts.

    GraphML is made by networkx, which the extra networks brings.

    [bold]Examples[/bold]

    prism log interactions runs/first --format csv

    prism log interactions runs/first -o first.graphml
    """
    from prism.analysis import interactions as count

    chosen = as_format or _by_name(out)
    if chosen is NetworkFormat.GRAPHML:
        _write(make(runs, _as_graphml), out, runs)
    elif chosen is NetworkFormat.EDGES:
        _write(make(runs, _as_edges), out, runs)
    else:
        show(runs, count, None if chosen is None else TableFormat(chosen), out)


def why(
    agent_id: Annotated[
        str, typer.Argument(metavar="AGENT", help="The agent.", show_default=False)
    ],
    runs: Runs,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Say why an agent let posts pass: relevance and threshold, what was open, what it chose.

    [bold]Example[/bold]

    prism log why agent_0001 runs/first
    """
    from prism.analysis import let_pass

    def table(opened: RunLogs) -> pl.DataFrame:
        try:
            return let_pass(opened, agent_id)
        except InputError:
            print_notes(opened)  # the agent may be in lines that could not be read
            raise

    chosen = choose_format(as_format, out)
    found = make(runs, table)
    shown = ["post_id", "relevance", "threshold", "topics", "options", "chosen"]
    # for prism log decision, where prompts were recorded
    if found["decision_id"].count():
        shown = [name if name != "topics" else "decision_id" for name in shown]

    write(found, chosen, out, shown, reads=runs)


def _by_name(out: Path | None) -> NetworkFormat | None:
    suffix = "" if out is None else out.suffix.removeprefix(".")
    return NetworkFormat(suffix) if suffix in set(NetworkFormat) else None


def _as_edges(opened: RunLogs) -> bytes:
    from prism.analysis import interactions as count

    pairs = count(opened)
    if "run" in pairs.columns:
        raise InputError("an edge list is of one run: give one, or --format csv for several")

    found = pairs.drop_nulls("author_id").select("agent_id", "author_id", "total")

    return "".join(_edge(*pair) for pair in found.iter_rows()).encode()


def _edge(agent: str, author: str, total: int) -> str:
    for name in (agent, author):
        if not name or any(character in name for character in _NOT_IN_EDGES):
            raise InputError(
                f"an edge list has no room for the agent {name!r}: take --format csv or graphml"
            )

    return f"{agent}\t{author}\t{total}\n"


def _as_graphml(opened: RunLogs) -> bytes:
    from io import BytesIO

    from prism.analysis import interaction_graph

    graph = interaction_graph(opened)

    import networkx  # type: ignore[import-untyped,import-not-found,unused-ignore]

    content = BytesIO()
    networkx.write_graphml(_writable(graph), content, prettyprint=True)

    return content.getvalue()


def _writable(graph: Any) -> Any:
    """Replace characters that XML has no room for, wherever the log has some."""
    import networkx  # type: ignore[import-untyped,import-not-found,unused-ignore]

    names = {name: printable(name) for name in graph}
    if len(set(names.values())) < len(names):
        twice = Counter(names.values()).most_common(1)[0][0]
        raise InputError(f"several agents would be written as {twice!r}: take --format csv")

    for _, facts in graph.nodes(data=True):
        facts.update({key: printable(text) for key, text in facts.items()})

    return networkx.relabel_nodes(graph, names)


def _write(content: bytes, out: Path | None, runs: Sequence[Path]) -> None:
    with standard_output(runs) if out is None else output_file(out, runs) as file:
        file.write(content)


OF_AGENTS = (agents, interactions, follows, why)
"""The commands, in the order of the help."""
