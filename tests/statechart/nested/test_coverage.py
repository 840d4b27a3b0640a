"""Coverage of a chart with composites counts what was written."""

from __future__ import annotations

from prism.telemetry import instrumented
from prism.testing._coverage import Recorder
from tests.statechart.nested.phone import Owner, Sleeper, day, whole_phone


def test_written_transitions_and_all_active_states_are_counted() -> None:
    """A composite's transition is one, whatever was active inside; a guard of a region counts."""
    recorder = Recorder()
    with instrumented(recorder):
        for chart, agent, events in (
            (whole_phone(), Owner(), ["opens", "rings", "resumes", "writes"]),
            (day(), Sleeper(), ["wakes", "opens", "posts", "tires"]),
        ):
            chart.begin(agent)
            for event in events:
                assert chart.fire(agent, event) is not None

    first, second = recorder.used()
    made = [each.text for place, each in enumerate(first.moves) if first.counts[place, "made"]]
    assert made == [
        "pocket --opens--> engaging",
        "reading --writes--> replying",
        "engaging --rings--> pocket",
        "pocket --resumes--> engaging.H",
    ]
    assert [*first.shares()["states"].missing] == ["sent", "broken"]
    assert [*second.shares()["states"].missing] == []
    assert [second.counts[place, "passed"] for place in range(5)] == [0, 0, 1, 0, 0]
