"""What the page says of a log that lacks agents, and of one agent or all at a chosen round."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.worlds import Run
from tests.kit.lamps import Street
from tests.kit.logs import events_in
from tests.kit.visits import Visitor
from tests.kit.worlds import run_in

Visit = Callable[[Any], Visitor]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"log_agents": 40}, "The log has 40 of 2,100 agents: the numbers in states count every"),
        ({"log_agents": 0}, "The log has 0 of 2,100 agents: the numbers in states count everybody"),
    ],
)
def test_a_log_without_everybody_says_whom_its_numbers_count(
    form: dict[str, Any], said: str, visit: Visit, tmp_path: Path
) -> None:
    """States of everybody and arrows of the sample have a label."""
    Run("epidemic", 2_100, rounds=3, seed=1, **form).keep(tmp_path / "real")
    sections = visit(tmp_path / "real").ask("/round", round=3)["sections"]
    (chart,) = (each for each in sections if each["anchor"] == "the-chart")
    assert chart["explanation"].startswith(said)
    counts = read_log(tmp_path / "real").sql("select agents from states where round = 3").fetchall()
    assert all(f"{count:,} agent" in chart["html"] for (count,) in counts)
    assert any("transitions" in each["html"] for each in sections if each["anchor"] == "numbers")


@pytest.mark.slow
def test_an_agent_has_its_fields_and_what_was_measured_of_it_in_the_round(
    visit: Visit, tmp_path: Path
) -> None:
    """Beside the fields of an agent when it joined stands what was measured at the chosen round."""
    run_in(tmp_path / "real", Run(Street, 6, seed=3))
    events = events_in(tmp_path / "real")
    measured = [event for event in events if event["event"] == "agents.measured"]
    agent = next(iter(measured[0]["values"]))
    client = visit(tmp_path / "real")
    for number in (1, 2):
        fields = client.html("/agent", agent=agent, round=number)["its-fields"]
        for event in (each for each in measured if each["round"] == number):
            row = fields.partition(f'<td class="">{event["measure"]}</td>')[2].partition("</tr>")[0]
            assert row.endswith(f">{json.dumps(event['values'][agent])}</td>")
