"""The pictures of the documentation, which the site makes: ``python docs/pictures.py [NAME...]``.

They show what prism does, so they are made from it. The README's alone is in the repository.
"""

import asyncio
import json
import re
import subprocess
import sys
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

from prism import Agent, Run
from prism.agents import opening_posts, synthetic_population
from prism.analysis import read_log
from prism.drawing import draw_curves
from prism.examples import (
    Council,
    Day,
    Epidemic,
    Lake,
    Market,
    Meadow,
    Vaccination,
)
from prism.examples.day import Person
from prism.examples.epidemic import Person as Patient
from prism.examples.haggle import Trader
from prism.examples.market import Buyer
from prism.examples.vaccination import Parent
from prism.programs.thinking import (
    CognitiveAgent,
    CognitiveState,
    Config,
    Memory,
    cognitive_chart,
)
from prism.programs.yaml import Workflow
from prism.reasoner import TextCall
from prism.report import make_report
from prism.report.drawing import THEMES
from prism.runlog import RunLog, SimulatedClock
from prism.science import compare
from prism.social import Feed
from prism.statechart import social_media_chart
from prism.testing import ScriptedWriter
from prism.watch import watch

DOCS = Path(__file__).parent


def tour(folder: Path) -> str:
    """Draw the two pictures that ``prism tour`` draws, side by side."""
    command = [sys.executable, "-c", "from prism.cli import main; main()", "tour"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    width, height, placed = 0, 0, []
    for name in ("chart.svg", "curves.svg"):
        picture = (folder / "tour" / name).read_text(encoding="utf-8")
        placed.append(f'<g transform="translate({width} 0)">{picture}</g>')
        own_width, own_height = map(int, re.findall(r'="(\d+)"', picture)[:2])
        width, height = width + own_width, max(height, own_height)

    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(placed)}</svg>\n'


def part_of_tour(place: int) -> Callable[[Path], str]:
    """Return what draws one of the two."""

    def draw(_folder: Path) -> str:
        both = (DOCS / "pictures/tour.svg").read_text(encoding="utf-8")
        return re.findall(r"<g [^>]*>(<svg.*?</svg>\n)</g>", both, re.DOTALL)[place]

    return draw


def chart(_folder: Path) -> str:
    """Draw the transitions that a hundred agents of the feed made, with their traffic."""
    run = Run(Feed(preset="classic"), 100, rounds=2, seed=7)
    run.run()
    records = [record for agent in run.agents for record in agent.state_history]
    traffic = Counter((record.from_state, record.to_state) for record in records)
    made = {(record.trigger, record.from_state, record.to_state) for record in records}

    full = social_media_chart()
    named = {(each.trigger, each.source, each.target) for each in full.transitions}
    # with the time-outs that nobody needed, it would be too wide for a phone
    return full.extended(without=named - made).to_svg(traffic)


def states(folder: Path) -> str:
    """Draw the agents in each state, a figure of the report."""
    clock, population = SimulatedClock(), synthetic_population(60, seed=7)
    path = folder / "events.jsonl"
    with RunLog(path, clock) as log:
        posts = opening_posts(population.agents, seed=7)
        given = {"rounds": 4, "seed": 7, "logger": log.logger, "clock": clock}
        Run(Feed(first_posts=posts, preset="classic"), population.agents, **given).run()

    return _figure(path, "states.svg")


def town(folder: Path) -> str:
    """Draw the residents of a town in their houses, as the world's picture has them."""
    Run("schelling", 115, seed=1).keep(folder / "town")
    return _figure(folder / "town" / "events.jsonl", "picture.svg")


def comparison(folder: Path) -> str:
    """Draw what a comparison says of a rumour with and without a warning, round by round."""
    groups: dict[str, tuple[str, ...]] = {"control": (), "warned": ("warning@2",)}
    for (name, treatments), seed in product(groups.items(), range(8)):
        run = Run("rumour", 60, rounds=12, seed=seed, treatments=treatments)
        run.keep(folder / name / str(seed))
    found = compare(*(folder / name for name in groups), measures=["reached"])
    found.save_figures(folder)

    return _coloured(folder / "rounds-1.svg")


def _figure(log: Path, name: str) -> str:
    make_report(read_log(log)).save_figures(log.parent)
    return _coloured(log.parent / name)


def _dark_rules(colours: Sequence[str]) -> str:
    """Return the rules by which a figure of the light theme has the colours of the dark one."""
    light, dark = (json.dumps(THEMES[name]) for name in ("light", "dark"))
    pairs = dict(zip(*(re.findall("#[0-9a-f]{6}", theme) for theme in (light, dark)), strict=True))
    return "\n".join(
        f'.picture [{name}="{colour}"] {{ {name}: {pairs[colour]}; }}'
        for colour in colours
        for name in ("fill", "stroke")
        if colour in pairs
    )


def _coloured(figure: Path) -> str:
    """Return a figure in colours for light and dark pages."""
    svg = figure.read_text(encoding="utf-8")
    colours = sorted(set(re.findall(r'="(#[0-9a-f]{6})"', svg)))
    dark = f"<style>@media (prefers-color-scheme: dark) {{ {_dark_rules(colours)} }}</style>"
    head = re.match(r"<svg[^>]*>", svg)
    assert head is not None
    opened = re.sub(r'class="[^"]*"', 'class="marks picture"', head[0])
    return f"{opened}{dark}{svg[head.end() :]}\n"


def phone(_folder: Path) -> str:
    """Draw the nested chart of the page on charts."""
    made: dict[str, Any] = {"__name__": "charts"}
    exec(_written("charts.md", "python", "History(Phone.ENGAGING)"), made)
    svg: str = made["chart"].to_svg()
    return svg


def walker(folder: Path) -> str:
    """Draw the states of the first agent on the page on workflows."""
    path = folder / "walker.yaml"
    path.write_text(_written("workflows.md", "yaml", "name: walker"), encoding="utf-8")
    return Workflow.load(path).chart.to_svg()


def _written(page: str, language: str, having: str) -> str:
    """Return the first block of a page in a language that has a text."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if having in block)


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
        overflows = any(moved.why == "soft_limit" for moved in cycle.paged)
        taken[CognitiveState.THINKING, CognitiveState.PAGING] += overflows

    return cognitive_chart().to_svg(taken)


def curves_of(
    world: Any,
    measure: str,
    title: str,
    rounds: int,
    up: str = "share",
    agents: int = 100,
    **varied: Sequence[float],
) -> Callable[[Path], str]:
    """Return what draws the curves of a measure for the values of one parameter."""
    ((name, values),) = varied.items()

    def draw(_folder: Path) -> str:
        groups = {
            f"{name} {value}": list(map(partial(curve, value), (1, 2, 3))) for value in values
        }
        return draw_curves(groups, title=title, across="round", up=up)

    def curve(value: float, seed: int) -> list[float]:
        found = Run(world(**{name: value}), agents, seed=seed, rounds=rounds).run().series(measure)
        # a run that has ended stays where it is
        return [*found, *[found[-1]] * (rounds - len(found))]

    return draw


_EPIDEMIC = curves_of(Epidemic, "ill", "People who are ill", 60, rewired=(0.0, 0.3))
_DAY = curves_of(Day, "hours_lost", "Work lost to the phone", 10, "hours", messages=(0.0, 0.8))
_LAKE = curves_of(Lake, "left", "Fish left", 30, agents=20, rest_below=(0.0, 0.5))
_MARKET = curves_of(Market, "bought", "Buyers served", 20, raised=(1.1, 2.0))
_MEADOW = curves_of(Meadow, "flock", "Sheep", 60, "sheep", agents=20, regrowth=(0.05, 0.1))
_VACCINATED = curves_of(Vaccination, "covered", "Children vaccinated", 10, friends=(2, 8))


def chart_of(agent: type[Agent]) -> Callable[[Path], str]:
    """Return what draws the chart of a class of agents."""
    return lambda _folder: agent.chart.to_svg()


_THOUGHT = json.dumps({"next_state": "executing", "thinking_log": "Let me act."})


def council(_folder: Path) -> str:
    """Draw the notes on the council's board."""

    def script(call: TextCall) -> str:
        note = {"name": "post", "arguments": {"text": "I am for it."}}
        return _THOUGHT if ":thinking" in call.key else json.dumps(note)

    run = Run(Council, 5, seed=1, rounds=12, writer=ScriptedWriter(script))
    curve = list(map(float, run.run().series("posted")))
    return draw_curves({"posted": [curve]}, title="Notes on the board", across="round", up="posted")


def viewer(folder: Path) -> str:
    """Show the page of ``prism watch`` in a browser, by day and by night."""
    shots = {scheme: b64encode(shot).decode() for scheme, shot in _shots(folder).items()}
    images = "".join(
        f'<image class="{scheme}" width="480" height="820" href="data:image/png;base64,{shot}"/>'
        for scheme, shot in shots.items()
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="480" height="820" '
        'viewBox="0 0 480 820" style="max-width: 100%; height: auto"><style>.dark { display: none }'
        " @media (prefers-color-scheme: dark) { .dark { display: inline } .light { display: none }"
        f" }}</style>{images}</svg>\n"
    )


def _watched(folder: Path) -> Path:
    run = folder / "rumour"
    if not run.exists():
        Run("rumour", 60, rounds=12, seed=1).keep(run)
    return run / "events.jsonl"


def _shots(folder: Path) -> dict[str, bytes]:
    """Take a picture of the viewer in light and in dark colours."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = ChromeOptions()
    options.binary_location = which("chromium") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    watching = watch(_watched(folder).parent)
    driver = Chrome(options=options, service=Service(which("chromedriver")))
    metrics = {"width": 480, "height": 820, "deviceScaleFactor": 1.5, "mobile": False}
    try:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get(f"{watching.url}#round=6")
        drawn = "return Number(document.body.dataset.drawn) > 1"
        WebDriverWait(driver, 60).until(lambda page: page.execute_script(drawn))
        found = {}
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            found[scheme] = driver.get_screenshot_as_png()
    finally:
        driver.quit()
        watching.stop()

    return found


PICTURES: dict[str, Callable[[Path], str]] = {
    "pictures/chart.svg": chart,
    "pictures/cognition.svg": thinking,
    "pictures/comparison.svg": comparison,
    "pictures/council.svg": council,
    "pictures/epidemic-chart.svg": chart_of(Patient),
    "pictures/epidemic.svg": _EPIDEMIC,
    "pictures/day-chart.svg": chart_of(Person),
    "pictures/day.svg": _DAY,
    "pictures/haggle-chart.svg": chart_of(Trader),
    "pictures/lake.svg": _LAKE,
    "pictures/meadow.svg": _MEADOW,
    "pictures/market-chart.svg": chart_of(Buyer),
    "pictures/market.svg": _MARKET,
    "pictures/phone.svg": phone,
    "pictures/states.svg": states,
    "pictures/town.svg": town,
    "pictures/tour.svg": tour,
    "pictures/tour-chart.svg": part_of_tour(0),
    "pictures/tour-curves.svg": part_of_tour(1),
    "pictures/vaccination-chart.svg": chart_of(Parent),
    "pictures/vaccination.svg": _VACCINATED,
    "pictures/viewer.svg": viewer,
    "pictures/walker.svg": walker,
}
"""Each picture's path below this folder, and what draws it in a folder for temporary files."""


def drawn(name: str) -> str:
    """Draw a picture.

    Args:
        name: Its path below this folder.
    """
    with TemporaryDirectory() as folder:
        return PICTURES[name](Path(folder))


def make(names: Iterable[str] = tuple(PICTURES)) -> None:
    """Make some of the pictures, by default all."""
    for name in names:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(drawn(name), encoding="utf-8")


def make_outdated() -> None:
    """Make the pictures that are missing, or older than prism."""
    code = [DOCS / "pictures.py", *(DOCS.parent / "prism").rglob("*.*")]
    latest = max(path.stat().st_mtime for path in code if "__pycache__" not in path.parts)
    paths = {name: DOCS / name for name in PICTURES}
    make(
        name for name, path in paths.items() if not path.is_file() or path.stat().st_mtime < latest
    )


if __name__ == "__main__":
    make(sys.argv[1:] or PICTURES)
