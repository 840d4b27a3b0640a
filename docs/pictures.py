"""All pictures of the documentation: ``python docs/pictures.py`` makes them again.

They show what prism does, so they are out of date as soon as that changes:
``python docs/pictures.py --check`` names those, and a test does the same.
"""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prism import Run
from prism.agents import opening_posts, synthetic_population
from prism.analysis import read_log
from prism.cognition import CognitiveAgent, CognitiveState, Config, Memory, cognitive_chart
from prism.drawing import beside, draw_curves
from prism.report import make_report
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed, Parameters
from prism.statechart import social_media_chart
from prism.worlds.examples import Epidemic, Lake, Market, Threshold, Vaccination
from prism.worlds.examples.epidemic import Person as Patient
from prism.worlds.examples.market import Buyer
from prism.worlds.examples.threshold import Person as Joiner
from prism.worlds.examples.vaccination import Parent

DOCS = Path(__file__).parent


def rooms(_folder: Path) -> str:
    """Draw the rooms of prism and what they import."""
    sys.path.insert(0, str(DOCS))
    try:
        from house import picture
    finally:
        sys.path.pop(0)

    return picture()


def tour(folder: Path) -> str:
    """Draw what ``prism tour`` draws."""
    command = [sys.executable, "-c", "from prism.cli import main; main()", "tour"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (folder / "tour" / "rumour.svg").read_text(encoding="utf-8")


def chart(_folder: Path) -> str:
    """Draw the chart of the feed with the traffic of a hundred agents."""
    run = Run(Feed(preset="classic"), 100, rounds=2, seed=7)
    run.run()
    made = [record for agent in run.agents for record in agent.state_history]
    traffic = Counter((record.from_state, record.to_state) for record in made)
    return social_media_chart().to_svg(traffic)


def states(folder: Path) -> str:
    """Draw the agents in each state, a figure of the report."""
    clock, population = SimulatedClock(), synthetic_population(60, seed=7)
    path = folder / "events.jsonl"
    with RunLog(path, clock) as log:
        posts = opening_posts(population.agents, seed=7)
        lively = Parameters.preset("classic")
        given = {"rounds": 4, "seed": 7, "logger": log.logger, "clock": clock}
        Run(Feed(first_posts=posts, parameters=lively), population.agents, **given).run()

    return _figure(path, "states-1.svg")


def town(folder: Path) -> str:
    """Draw the residents of a town in their houses, as the world's picture has them."""
    Run("schelling", 115, seed=1).keep(folder / "town")
    return _figure(folder / "town" / "events.jsonl", "picture-1.svg")


def _figure(log: Path, name: str) -> str:
    make_report(read_log(log)).save_figures(log.parent)
    figure = (log.parent / name).read_text(encoding="utf-8")

    # Where letters stand depends on the fonts and versions at hand. So this picture is compared by
    # the log that it shows, without its first line, which tells parameters that change nothing.
    _, _, shown = log.read_bytes().partition(b"\n")
    return f"{figure}\n<!-- shows the log {sha256(shown).hexdigest()} -->\n"


def thinking(_folder: Path) -> str:
    """Draw the chart of a thinking agent with the traffic of the example's thirty cycles."""
    sys.path.insert(0, str(DOCS / "cognition"))
    try:
        from author import write
    finally:
        sys.path.pop(0)

    class Author:
        """A client that is the author."""

        async def run(self, prompt: str) -> str:
            return write(prompt)

    memory = Memory.in_memory()
    agent = CognitiveAgent(Config.load(DOCS / "cognition" / "config.json"), memory, Author())
    taken: Counter[tuple[CognitiveState, CognitiveState]] = Counter()
    for cycle in asyncio.run(agent.run(cycles=30)):
        came_from, led_to = CognitiveState(cycle.state), CognitiveState(cycle.next_state)
        taken[came_from, led_to] += 1
        taken[CognitiveState.THINKING, CognitiveState.PAGING] += cycle.has_overflowed

    return cognitive_chart().to_svg(taken)


def curves_of(
    world: Any, chart: Any, measure: str, title: str, rounds: int, **varied: Sequence[float]
) -> Callable[[Path], str]:
    """Return what draws a chart, if any, beside curves for the values of one parameter."""
    ((name, values),) = varied.items()

    def draw(_folder: Path) -> str:
        groups = {
            f"{name} {value}": list(map(partial(curve, value), (1, 2, 3))) for value in values
        }
        curves = draw_curves(groups, title=title, across="round", up="share")
        return beside([chart.to_svg(), curves] if chart else [curves])

    def curve(value: float, seed: int) -> list[float]:
        found = Run(world(**{name: value}), 100, seed=seed, rounds=rounds).run().series(measure)
        # a run that has ended stays where it is
        return [*found, *[found[-1]] * (rounds - len(found))]

    return draw


_EPIDEMIC = curves_of(Epidemic, Patient.chart, "ill", "People who are ill", 60, rewired=(0.0, 0.3))
_LAKE = curves_of(Lake, None, "left", "Fish left", 30, rest_below=(0.0, 0.5))
_MARKET = curves_of(Market, Buyer.chart, "bought", "Buyers served", 20, raised=(1.1, 2.0))
_THRESHOLD = curves_of(
    Threshold, Joiner.chart, "joined", "People who have joined", 30, caution=(0.6, 0.8)
)
_VACCINATED = curves_of(
    Vaccination, Parent.chart, "covered", "Children vaccinated", 10, friends=(2, 8)
)

PICTURES: dict[str, Callable[[Path], str]] = {
    "house.svg": rooms,
    "pictures/chart.svg": chart,
    "pictures/cognition.svg": thinking,
    "pictures/epidemic.svg": _EPIDEMIC,
    "pictures/lake.svg": _LAKE,
    "pictures/market.svg": _MARKET,
    "pictures/states.svg": states,
    "pictures/town.svg": town,
    "pictures/threshold.svg": _THRESHOLD,
    "pictures/tour.svg": tour,
    "pictures/vaccination.svg": _VACCINATED,
}
"""Each picture's path below this folder, and what draws it in a folder for temporary files."""


def drawn(name: str) -> str:
    """Draw a picture.

    Args:
        name: Its path below this folder.
    """
    with TemporaryDirectory() as folder:
        return PICTURES[name](Path(folder))


def is_stale(name: str) -> bool:
    """Return True if a picture is not what would be drawn today.

    Args:
        name: Its path below this folder.
    """
    path, now = DOCS / name, drawn(name)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    return _compared(before) != _compared(now)


def _compared(picture: str) -> str:
    """Return the line that says what a picture shows, or else the whole picture."""
    shown = re.search(r"^<!-- shows the log .* -->$", picture, re.MULTILINE)
    return shown[0] if shown else picture


def main() -> int:
    """Make all pictures, or name those that are out of date."""
    if sys.argv[1:] != ["--check"]:
        for name in PICTURES:
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_text(drawn(name), encoding="utf-8")
        return 0

    stale = [name for name in PICTURES if is_stale(name)]
    for name in stale:
        print(f"docs/{name} is out of date: run  python docs/pictures.py")  # noqa: T201

    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
