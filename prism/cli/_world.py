"""``prism world``: the worlds there are, what they are, and whether they keep their word."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from prism.cli._options import (
    AsJson,
    Parameters,
    Treatments,
    command_group,
    import_from_here,
    named_values,
)
from prism.cli._screen import counted, note, pour_json, print_findings, print_table, say

worlds = command_group("List, describe and check worlds. To run one, use prism run.")

_ARGUMENTS = {"world": "WORLD"}

WorldArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORLD",
        help="package.module:Name, file.py:Name, or a name that prism world list shows.",
        show_default=False,
    ),
]


@worlds.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the worlds that come with prism.

    [bold]Example[/bold]

    prism world list
    """
    from prism.worlds._about import about_world
    from prism.worlds._addresses import address_of, known_worlds, load_world

    found = []
    for name in known_worlds():
        address = address_of(name)
        doc = str(about_world(load_world(address), address)["doc"]).partition("\n")[0]
        found.append({"name": name, "address": address, "doc": doc})
    if as_json:
        pour_json(found)
    else:
        rows = ((each["name"], each["doc"]) for each in found)
        print_table(rows, "name", "what it is")


@worlds.command()
def show(world: WorldArgument, as_json: AsJson = False) -> None:
    """Describe a world: parameters, kinds of agents with their charts, steps and measures.

    [bold]Examples[/bold]

    prism world show rumour

    prism world show mine.py:Mine --json
    """
    from prism.cli._running import naming_options
    from prism.worlds._about import about_world
    from prism.worlds._addresses import address_of, load_world

    import_from_here()
    with naming_options(_ARGUMENTS):
        address = address_of(world)
        about = about_world(load_world(address), address)

    if as_json:
        pour_json(about)
    else:
        for line in _lines(about):
            say(line)


def _lines(about: Mapping[str, Any]) -> Iterable[str]:
    from prism.worlds._about import signature_of

    def field_line(field: Mapping[str, Any]) -> str:
        drawn, said = field.get("drawn"), field.get("help")
        return signature_of(field) + f", {drawn}" * bool(drawn) + f": {said}" * bool(said)

    turns = ", all agents at once" * about["together"] + ", agents ahead" * about["independent"]
    turns += ", in the order of the list" * (about["order"] == "listed")
    yield f"{about['world']} ({about['address']})"
    yield from _indented(about["doc"].splitlines())
    yield f"{counted(about['rounds'], 'round')} of {counted(about['ticks'], 'tick')}{turns}"
    for heading, key in (("parameters (--set NAME=VALUE)", "parameters"), ("state", "state")):
        yield from _section(heading, map(field_line, about[key]))
    for kind in about["kinds"]:
        yield f"kind {kind['kind']}"
        yield from _indented([*kind["doc"].splitlines(), *_chart_lines(kind["chart"])])
        yield from _indented(map(field_line, kind["fields"]))
    measures = [f"{each['measure']}: {each['doc']}" for each in about["measures"]]
    measures += [
        f"{name} of each {kind['kind']}" for kind in about["kinds"] for name in kind["measures"]
    ]
    yield from _section("steps", map(_step_line, about["steps"]))
    if about["until"] is not None:
        yield from _section("ends earlier", [f"until: {about['until']}".removesuffix(": ")])
    yield from _section(
        "treatments (--treat NAME@ROUND)", map(_treatment_line, about["treatments"])
    )
    yield from _section("measures", measures)


def _step_line(step: Mapping[str, Any]) -> str:
    rate = f", at the rate {step['rate']}" if step["rate"] else ""
    return f"{step['step']}: during {', '.join(step['states'])}{rate}"


def _treatment_line(treatment: Mapping[str, Any]) -> str:
    round_ = treatment["round"]
    when = f" (automatically in round {round_})" if round_ else ""
    return f"{treatment['treatment']}{when}: {treatment['doc']}"


def _chart_lines(chart: Mapping[str, Any] | None) -> Iterable[str]:
    if chart is None:
        yield "no chart"
        return

    yield f"chart {chart['name']}, beginning in {chart['initial']}"
    for each in chart["transitions"]:
        asks = " (decides)" if each["source"] in chart["decision_states"] else ""
        yield f"  {each['source']} --{each['trigger']}--> {each['target']}{asks}"


def _section(heading: str, lines: Iterable[str]) -> Iterable[str]:
    found = [*_indented(lines)]
    return [heading, *found] if found else []


def _indented(lines: Iterable[str]) -> Iterable[str]:
    return (f"  {line}".rstrip() for line in lines)


@worlds.command()
def check(
    world: WorldArgument,
    agents: Annotated[str, typer.Option(metavar="N|FILE")] = "100",
    parameters: Parameters = None,
    treatments: Treatments = None,
    rounds: Annotated[int | None, typer.Option(min=1)] = None,
    ticks: Annotated[int | None, typer.Option(min=1)] = None,
    seed: int = 0,
    as_json: AsJson = False,
) -> None:
    """Run a world twice, under two hash seeds and with its agents in another order, and compare.

    Report the first field or event that differs. Without --treat, every treatment is applied once.
    Notes name probable mistakes in the charts, as prism chart check does.

    The exit status is 0 if nothing is found, 1 if something is, and 2 if the input is wrong.

    Options:
        agents: Number of agents, or a table of them.
        rounds: Number of rounds; by default the world's own, but at most 20.
        ticks: Ticks in a round; by default the world's own.
        seed: Seed of every random number.

    [bold]Examples[/bold]

    prism world check rumour

    prism world check mine.py:Mine --agents people.csv --set beta=0.3
    """
    from prism.cli._running import naming_options
    from prism.worlds._checking import check_world

    import_from_here()
    if sys.stderr.isatty():  # it takes a while, without anything to show
        note("running the world in fresh processes, to compare the runs")
    with naming_options(_ARGUMENTS):
        checked = check_world(
            world,
            agents,
            rounds=rounds,
            ticks=ticks,
            seed=seed,
            parameters=named_values(parameters),
            treatments=treatments,
        )

    found = checked.findings
    print_findings(list(map(str, found)), list(map(asdict, found)), as_json=as_json)
    if not as_json:
        for each in checked.notes:
            note(each)
        _note_what_was_checked(world, rounds, is_same=not found)


def _note_what_was_checked(world: str, rounds: int | None, *, is_same: bool) -> None:
    """Say what agreed and was left out, and the probable mistakes in the charts of a world."""
    from prism.statechart import Statechart
    from prism.worlds._addresses import address_of, load_world
    from prism.worlds._checking import MOST_ROUNDS
    from prism.worlds._world import kinds_of

    cls = load_world(address_of(world))
    for kind in kinds_of(cls):
        # that of a workflow or a thinking agent belongs to the agent
        chart = getattr(kind, "chart", None)
        for each in chart.check() if isinstance(chart, Statechart) else ():
            note(f"chart of {kind.__name__}: {each.message}")
    if is_same:
        note("the world gave the same run with another hash seed and order of agents")
    if rounds is None and cls.rounds > MOST_ROUNDS:
        note(
            f"only the first {MOST_ROUNDS} of {cls.rounds} rounds were checked; --rounds "
            f"{cls.rounds} checks all"
        )
