"""Having a hand in the charts that are built."""

from typing import Any

from prism.agents import SocialAgent
from prism.statechart import social_media_chart
from prism.telemetry._watching import watching


def test_charts_built_meanwhile_are_watched() -> None:
    """A watcher is given the name and rows of every chart that is built meanwhile, and of no other."""
    seen: list[str] = []

    def watch(name: str, rows: Any) -> Any:
        seen.append(name)
        return rows

    social_media_chart()
    with watching(watch):
        social_media_chart()
    social_media_chart()
    assert seen == ["social_media"]


def test_chart_runs_what_the_watchers_give() -> None:
    """What a watcher puts in place of a guard or an action is what the chart runs, also after the watching ended."""
    made: list[str] = []

    def watch(name: str, rows: Any) -> Any:
        return {
            state: {
                trigger: tuple(
                    (guard, lambda agent, context: made.append(agent.agent_id), target, edge)
                    for guard, _, target, edge in candidates
                )
                for trigger, candidates in row.items()
            }
            for state, row in rows.items()
        }

    with watching(watch):
        chart = social_media_chart()
    agent = SocialAgent("ada")
    assert chart.fire(agent, "feed_ready") == "scrolling"
    assert made == ["ada"]
