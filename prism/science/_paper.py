"""What a paper needs from an experiment: tables, a methods paragraph, and a page on the world.

The description follows the ODD protocol (Grimm et al. 2020, Journal of Artificial Societies and
Social Simulation 23(2) 7), as far as the world declares the required information.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from prism import __version__
from prism.errors import SimulationError
from prism.files import make_folder, write_durably
from prism.science._batch import Batch
from prism.science._libraries import library
from prism.science._plan_file import FEED
from prism.worlds._about import about_world, signature_of
from prism.worlds._addresses import address_of, load_world
from prism.worlds._networks import Network

_UNSAID = "Not declared."
_IN_DOCSTRING = "Not declared: its docstring, which is missing, would stand here."
_BIBLIOGRAPHY = "prism.bib"


def write_paper(
    folder: Path, tables: Mapping[str, pl.DataFrame], methods: str, batch: Batch | None
) -> list[Path]:
    """Write tables as LaTeX and CSV, the methods as text, a citation, and the world's description.

    Args:
        folder: The folder, made if it does not exist. Files of the same names are replaced.
        tables: The tables, by name.
        methods: The paragraph.
        batch: The batch, whose world is described unless it is the feed, which has its page.

    Returns:
        The paths of the files.

    Raises:
        OSError: If they cannot be written.
        InputError: If the world cannot be loaded any more.
    """
    texts = {"methods.md": methods + "\n", _BIBLIOGRAPHY: bibliography()}
    if batch is not None and batch.plan.data.get("world") not in (None, FEED, "social"):
        texts["odd.md"] = odd_page(batch.plan.data["world"], _network_of(batch))
    for name, table in tables.items():
        texts[f"{name}.tex"] = latex_of(table)
        texts[f"{name}.csv"] = table.write_csv()

    make_folder(folder)
    for name, text in texts.items():
        write_durably(folder / name, text.encode())

    return [folder / name for name in texts]


def bibliography() -> str:
    """Return how to cite prism, as BibTeX; ``CITATION.cff`` has the same."""
    return f"""\
@software{{prism,
  title = {{prism: statecharts for agents that a language model drives}},
  author = {{{{The prism authors}}}},
  version = {{{__version__}}},
  year = {{2026}},
}}
"""


def latex_of(table: pl.DataFrame) -> str:
    """Return a table as LaTeX with the rules of booktabs; numbers have three digits."""
    said = table.with_columns(pl.col(pl.Boolean).replace_strict([True, False], ["yes", "no"]))
    # as objects, so that whole numbers stay whole in columns with missing values
    frame = library("pandas").DataFrame(said.to_dict(as_series=False), dtype=object)
    text: str = frame.to_latex(
        index=False,
        escape=True,
        na_rep="",
        float_format="%.3g",
        column_format="".join("r" if kind.is_numeric() else "l" for kind in table.dtypes),
    )
    return text


def versions(*libraries: str) -> str:
    """Return the versions of prism, Python and libraries as part of a sentence."""
    named = [f"prism {__version__}", f"Python {platform.python_version()}"]
    named += [f"{name} {version(name)}" for name in libraries]

    return ", ".join(named[:-1]) + f" and {named[-1]}"


def seeds_of(seeds: Sequence[int]) -> str:
    """Return seeds as text, as a range if they are consecutive."""
    known = sorted(set(seeds))
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"seeds {known[0]} to {known[-1]}"

    return ("seed " if len(known) == 1 else "seeds ") + ", ".join(map(str, known))


def arranged(batch: Batch) -> Iterator[str]:
    """Yield what a batch varies as sentences: agents, values of parameters, and treatments."""
    data, results = batch.plan.data, batch.results()
    agents = " or ".join(f"{each:,}" for each in sorted(results["agents"].drop_nulls().unique()))
    if agents:
        yield f"Each run had {agents} agents."
    if vary := data.get("vary"):
        varied = (f"{name} ({', '.join(map(str, values))})" for name, values in vary.items())
        yield f"Varied in every combination: {', '.join(varied)}."

    if common := data.get("treatments"):
        yield f"Treatments of all runs: {_in_rounds(common)}."
    told = {arm["name"]: arm.get("treatments", ()) for arm in data.get("arm", ())}
    if any(told.values()):
        arms = (f"{name} ({_in_rounds(given)})" for name, given in told.items())
        yield f"Arms: {', '.join(arms)}."


def _in_rounds(treatments: Sequence[str]) -> str:
    return ", ".join(each.replace("@", " in round ") for each in treatments) or "no treatment"


def _network_of(batch: Batch) -> str:
    """Return the network that the first run of a batch begins with, as a sentence."""
    run = batch.runs[0]
    options = batch.plan.options(run.configuration, run.seed).replace(reasoner=None)
    world = options.prepare(None).world
    try:
        network = world.network
    except SimulationError:
        # it has none
        return ""
    if not isinstance(network, Network):
        return ""

    agents, ties = len(world.agents), len(network.pairs())
    kind = "directed" if network.directed else "undirected"
    return (
        f"Network: {kind}, made when the run is set up; in the first run {agents:,} agents with "
        f"{ties:,} ties, {ties * (1 if network.directed else 2) / agents:.3g} for each agent."
    )


def completed(batch: Batch) -> str:
    """Return how many runs of a batch completed, as a sentence."""
    count = len(batch.runs)
    if batch.is_complete:
        return f"All {counted(count, 'run')} completed."

    ended = sum(each.status == "complete" for each in batch.runs)
    return f"Of {counted(count, 'run')}, {ended} completed and {len(batch.failed)} failed."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 run`` or ``2 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_PROCESSES = {
    "together": "In every tick, all agents act at once.",
    "all": "In every tick, all agents act in turns.",
    "one": "In every tick, one agent acts, chosen at random.",
    "pair": "In every tick, one agent meets another, both chosen at random.",
    "rate": "Events happen one at a time, at rates per round, in continuous time.",
}


def odd_page(world: str, network: str = "") -> str:
    """Return a description of a world by the ODD protocol, as Markdown.

    Args:
        world: Its address, such as ``file.py:Name``.
        network: A sentence on its network, if it has one.

    Raises:
        InputError: If there is no such world.
    """
    address = address_of(world)
    cls = load_world(address)
    about = about_world(cls, address)

    return "\n".join(_odd_lines(about, network)) + "\n"


def _odd_lines(about: Mapping[str, Any], network: str) -> Iterator[str]:
    yield f"# {about['world']}: overview, design concepts and details"
    yield ""
    yield "After the ODD protocol (Grimm et al. 2020), as far as the world declares it."
    yield from _section("1. Purpose and patterns", [about["doc"]])
    yield "## 2. Entities, state variables and scales"
    yield ""
    for kind in about["kinds"]:
        yield from _entity(kind)
    yield from _listed("State of the world", [signature_of(each) for each in about["state"]])
    if network:
        yield network
        yield ""
    rounds, ticks = counted(about["rounds"], "round"), counted(about["ticks"], "tick")
    yield f"Time: {rounds} of {ticks}, unless a run says otherwise."
    process = "together" if about["together"] else about["activation"]
    ends = about["until"]
    earlier = "" if ends is None else f" A run ends earlier by `until`: {ends or _IN_DOCSTRING}"
    yield from _section("3. Process overview and scheduling", [_PROCESSES[process] + earlier])
    yield from _listed("Steps", [_step(each) for each in about["steps"]])
    yield from _section(
        "4. Design concepts",
        [
            "Stochasticity: random numbers are keyed by seed, agent and round, so runs of one seed "
            "share them. Observation: the measures below. Everything else: " + _UNSAID
        ],
    )
    of_agents = [f"`{name}` of each {kind['kind']}" for kind, name in _measured(about["kinds"])]
    yield from _listed("Measures", [*_documented("measure", about["measures"]), *of_agents])
    beginning = "State variables are drawn as listed above. Parameters are set for each run."
    yield from _section("5. Initialization", [beginning])
    yield from _listed("Parameters", [_parameter(each) for each in about["parameters"]])
    yield from _section("6. Input data", [_UNSAID])
    yield from _section("7. Submodels", ["The steps above; what they compute is in their code."])
    yield from _listed("Treatments", _documented("treatment", about["treatments"]))


def _measured(kinds: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str]]:
    return ((kind, name) for kind in kinds for name in kind["measures"])


def _documented(what: str, listed: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"`{each[what]}`: {each['doc'] or _IN_DOCSTRING}" for each in listed]


def _section(title: str, texts: Sequence[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield "\n\n".join(text or _UNSAID for text in texts)
    yield ""


def _entity(kind: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {kind['kind']}"
    yield ""
    yield kind["doc"] or _IN_DOCSTRING
    yield ""
    chart = kind["chart"]
    if chart is not None:
        moves = [
            f"`{each['trigger']}`: {each['source']} to {each['target']}"
            for each in chart["transitions"]
        ]
        yield from _listed(f"States ({chart['initial']} at first)", chart["states"])
        yield from _listed("Transitions", moves)
    fields = [
        signature_of(each) + (f", drawn: {each['drawn']}" if "drawn" in each else "")
        for each in kind["fields"]
    ]
    yield from _listed("State variables", fields)


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"{title}:"
        yield ""
        yield from (f"- {item}" for item in items)
        yield ""


def _step(step: Mapping[str, Any]) -> str:
    rate = f", at the rate {step['rate']}" if step["rate"] else ""
    return f"`{step['step']}` in {', '.join(step['states'])}{rate}: {step['doc'] or _IN_DOCSTRING}"


def _parameter(parameter: Mapping[str, Any]) -> str:
    said = f": {parameter['help']}" if parameter["help"] else ""
    return signature_of(parameter) + said
