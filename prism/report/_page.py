"""A report on runs, as one page, and its figures as files for papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prism import examples
from prism.analysis import Log, Note, Run
from prism.drawing import Arrow, Diagram
from prism.errors import InputError, PrismError
from prism.files._records import shown_path
from prism.programs.thinking import cognitive_chart
from prism.report._document import Document, library
from prism.report._facts.run_facts import RunFacts, facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.rendering import FigureFormat
from prism.report._figures.timeline import are_many
from prism.report._sections import make_sections
from prism.runs._folder import read_summary
from prism.statechart import Statechart, social_feed_chart, social_media_chart
from prism.statechart.outline import to_outline

_NOTHING_TO_SHOW: tuple[str, ...] = ("empty", "unreadable")


class Report:
    """A report on one run, or on several side by side; made by `make_report`.

    Args:
        runs: The facts of each run.
        notes: Notes on the logs.

    Attributes:
        runs: The facts of each run.
        notes: Notes on the logs.
    """

    def __init__(self, runs: Sequence[RunFacts], notes: Sequence[Note]) -> None:
        self.runs: tuple[RunFacts, ...] = tuple(runs)
        self.notes: tuple[Note, ...] = tuple(notes)
        states = dict.fromkeys(name for facts in runs for name in facts.state_names)
        by_round = any(are_many(facts.states) for facts in runs)
        figures = PageFigures(
            tuple(states), narrow=len(runs) > 1, by_round=by_round, runs=self.runs
        )
        sections = make_sections(self.runs, figures)
        figures.share_scales()

        labels = [facts.run.label for facts in self.runs]
        self._document = Document(
            title=" and ".join(labels),
            subtitle=_subtitle(self.runs),
            sections=sections,
            figures=figures,
            notes=[shown_path(str(note)) for note in self.notes],
            sources=list(dict.fromkeys(shown_path(facts.run.path) for facts in self.runs)),
            runs=labels,
        )

    def html(self) -> str:
        """Return the report as one HTML page that works offline."""
        return self._document.html()

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file.

        Args:
            folder: The folder, created if it does not exist. Files of the same names are replaced.
            format: ``svg``; ``png`` with two pixels for each pixel of the page; or ``pdf`` with
                vectors and embedded fonts.

        Returns:
            The paths of the files, without those of figures in `failures`.

        Raises:
            InputError: If there is no such format.
            OSError: If a file cannot be written.
        """
        return self._document.save_figures(folder, format)

    @property
    def failures(self) -> Mapping[str, str]:
        """The reasons why figures could not be drawn, by name; usually empty."""
        return self._document.failures


def make_report(log: Log, charts: Iterable[Statechart[Any]] = ()) -> Report:
    """Make a report on one run, or on several side by side.

    Args:
        log: The logs, from `read_log`.
        charts: Your own charts that the runs follow. Each is drawn as defined if the logs have
            transitions of a chart with its name. For other charts that do not come with prism, only
            the transitions that were made are drawn.

    Returns:
        The report, to be saved as a page or as figures.

    Raises:
        InputError: If the logs hold no event of prism, or no transition by one of the charts.
    """
    library()  # takes a second or two, while the logs are read
    known = [to_outline(chart.definition) for chart in charts]
    runs, notes = facts_of(log, known, familiar_charts(log.runs))
    if not runs:
        raise InputError("; ".join(str(note) for note in notes if note.kind in _NOTHING_TO_SHOW))

    for chart in known:
        _check_follows(chart.name, runs)

    return Report(runs, notes)


def familiar_charts(runs: Iterable[Run] = ()) -> tuple[Diagram, ...]:
    """Return prism's own charts, which logs name without their definitions.

    Args:
        runs: The runs; those of example worlds, of which ``run.json`` tells, have their charts.
    """
    named = (run for run in runs if run.world in examples.__all__)
    worlds = sorted({_world_of(run.path) for run in named})
    return *_charts_of_feeds(), *(chart for world in worlds for chart in _of_example(world))


def _world_of(log: Path) -> str:
    """Return where the world of a run is; nothing if no folder tells."""
    try:
        return str(read_summary(log.parent)["config"].get("world"))
    except PrismError:
        return ""


@cache
def _of_example(world: str) -> tuple[Diagram, ...]:
    """Return the charts of an example; those of others are not prism's."""
    module, _, name = world.partition(":")
    if module.rpartition(".")[0] != examples.__name__ or name not in examples.__all__:
        return ()

    from prism.worlds._world import outlines_of

    return tuple(outlines_of(getattr(examples, name)))


@cache
def _charts_of_feeds() -> tuple[Diagram, ...]:
    charts: tuple[Statechart[Any], ...] = (
        *(social_media_chart(acts=acts) for acts in (False, True)),
        *(social_feed_chart(acts=acts) for acts in (False, True)),
    )
    thinking = to_outline(cognitive_chart().definition)
    # the actions depend on the agent
    arrows = tuple(replace(arrow, labels=_triggers(arrow)) for arrow in thinking.arrows)

    return *(to_outline(chart.definition) for chart in charts), replace(thinking, arrows=arrows)


def _triggers(arrow: Arrow) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label.partition(" ")[0] for label in arrow.labels))


def _check_follows(chart: str, runs: Sequence[RunFacts]) -> None:
    """Refuse a chart that no run follows."""
    followed = dict.fromkeys(name for facts in runs for name in facts.chart_names)
    if chart in followed:
        return

    by = ", ".join("a chart without a name" if name is None else name for name in followed)
    raise InputError(
        f"no run has transitions by the chart {chart}" + (f", only by {by}" if by else ""),
        field="charts",
    )


def _subtitle(runs: Sequence[RunFacts]) -> str:
    if len(runs) > 1:
        return f"{len(runs)} runs side by side"

    run = runs[0].run
    parts = [_counted(runs[0].agents.height, "agent")]
    if run.logged_agents is not None and run.agents is not None:
        parts = [f"{run.logged_agents:,} of {_counted(run.agents, 'agent')}"]
    if run.rounds is not None and runs[0].is_of_turns:
        parts.append(_counted(run.rounds, "turn"))
    elif run.rounds is not None and run.ticks_per_round is not None:
        parts.append(f"{_counted(run.rounds, 'round')} of {_counted(run.ticks_per_round, 'tick')}")
    if run.seed is not None:
        parts.append(f"seed {run.seed}")

    return ", ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
