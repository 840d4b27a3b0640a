"""``prism world``: the worlds there are, what they are, and whether they keep their word."""

from __future__ import annotations

import keyword
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prism.cli import _options as options
from prism.cli._screen import counted, note, print_findings, print_heading, print_json, say
from prism.cli._tables import draw_rows
from prism.errors import InputError

world = options.command_group("List, describe, check and begin worlds. To run one, use prism run.")

WorldArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORLD", help="package.module:Name, file.py:Name, or a name of prism world list."
    ),
]


@world.command("list")
def list_(as_json: options.AsJson = False) -> None:
    """List the worlds that come with prism.

    **Example**

    * `prism world list`
    """
    from prism.worlds.addresses import class_of, named_worlds
    from prism.worlds.checking import about_world

    worlds = []
    for name in named_worlds():
        cls, address = class_of(name)
        doc = str(about_world(cls, address)["doc"]).partition("\n")[0]
        worlds.append({"name": name, "address": address, "doc": doc})
    if as_json:
        print_json(worlds)
    else:
        draw_rows(worlds, ["name", "doc"])


@world.command()
def show(world: WorldArgument, as_json: options.AsJson = False) -> None:
    """Describe a world: parameters, kinds of agents with their states, treatments and measures.

    **Examples**

    * `prism world show rumour`

    * `prism world show mine.py:Mine --json`
    """
    from prism.worlds.addresses import class_of
    from prism.worlds.checking import about_world

    about = about_world(*class_of(world))

    if as_json:
        print_json(about)
        return
    print_heading(f"{about['world']} ({about['address']})")
    for line in about["doc"].splitlines():
        say(line)
    say(f"{counted(about['rounds'], 'round')} of {counted(about['ticks'], 'tick')}")
    for name in ("parameters", "kinds", "treatments", "measures"):
        if about[name]:
            print_heading(name)
            draw_rows(about[name])


_FIRST_WORLD = '''"""{name}: change the states, the step and the measure, and run it."""

from enum import StrEnum

from prism import Agent, Run, Statechart, Transition, World, during, measure

Mood = StrEnum("Mood", ["CALM", "EXCITED"])


class Person(Agent):
    chart = Statechart(Mood, [Transition("excited", Mood.CALM, Mood.EXCITED)], Mood.CALM)


class {name}(World[Person]):
    rounds = 20
    chance: float = 0.1

    @during(Mood.CALM)
    def meet(self, person):
        if person.random.chance(self.chance + self.share(Mood.EXCITED) / 2):
            person.fire("excited")

    @measure
    def excited(self):
        return self.share(Mood.EXCITED)


if __name__ == "__main__":
    print(Run({name}, 100, seed=1).run().series("excited"))
'''


@world.command()
def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the world, such as Party.")],
) -> None:
    """Write a world of 30 lines to begin from, NAME.py, and overwrite nothing.

    **Example**

    * `prism world init Party`
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"{name!r} is no name for a class: use letters, digits and underscores")
    path = Path(f"{name.lower()}.py")
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(_FIRST_WORLD.format(name=name))
    except FileExistsError:
        raise InputError("already exists and would be overwritten", path=path) from None
    say(f"{path}: a world to begin from; run it with: prism run {path}:{name}")


@world.command()
def check(
    world: WorldArgument,
    agents: options.Agents = None,
    parameters: options.Set = None,
    treatments: options.Treat = None,
    rounds: options.Rounds = None,
    ticks: options.Ticks = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Run a world under two hash seeds and with its agents in another order, and compare the logs.

    Report the first line that differs. Without `--agents`, there are 100; without
    `--rounds`, at most 20; without `--treat`, every treatment is applied once. Notes name events
    that did nothing or were never fired, states nobody entered, and attributes that seem
    misspelt.

    The exit status is 0 if nothing is found, 1 if something is, and 2 if the input is wrong.

    **Examples**

    * `prism world check rumour`

    * `prism world check mine.py:Mine --agents people.csv --set beta=0.3`
    """
    from prism.worlds.checking import check_world

    findings, notes = check_world(
        world,
        agents or 100,
        rounds=rounds,
        ticks=ticks,
        seed=seed,
        parameters=options.named_values(parameters),
        treatments=treatments,
    )
    print_findings(list(map(str, findings)), list(map(asdict, findings)), as_json=as_json)
    for each in () if as_json else notes:
        note(each)
    if not as_json:
        note("the world gave the same run with another hash seed and order of agents")
