"""What a person sees."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from prism.cli._results import print_results
from prism.social import Cascade, Results
from prism.statechart import AgentState
from prism.worlds import WorldRound

Shown = Callable[..., list[str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Return a function that prints results at a width and returns the lines."""

    def show(results: Results, folder: Path | None = None, *, width: int = 80) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        print_results(results, folder)
        return capsys.readouterr().out.splitlines()

    return show


def results_of(
    rounds: int = 10, agents: int = 100, cascades: tuple[Cascade, ...] = (), **totals: Any
) -> Results:
    """Return results in which the n-th state has an n-th of the agents in every round."""
    states = {state.value: agents // place for place, state in enumerate(AgentState, start=1)}
    last = {name: totals.pop(name, 0) for name in ("decisions_asked", "decisions_answered")}
    summaries = [round_of(number, states) for number in range(1, rounds)]
    summaries.append(round_of(rounds, states, **last, **totals))
    return Results(agents, tuple(summaries), cascades)


def round_of(number: int, states: Mapping[str, int], **counts: Any) -> WorldRound:
    """Return a round in which nothing else was counted."""
    usual = {"agent_ticks": 0, "transitions": 0, "decisions_asked": 0, "decisions_answered": 0}
    return WorldRound(number, states, {}, **{**usual, "timeouts": {}, **counts})


def rows(lines: list[str]) -> Mapping[str, list[str]]:
    """Return the numbers in the table of states by their first word."""
    found = [line.split() for line in lines if line.strip()]
    end = next(number for number, words in enumerate(found) if words == ["Engagement"])
    return {words[0]: words[1:] for words in found[:end]}


@pytest.mark.parametrize("agents", [1, 100, 10_000, 9_999_999])
@pytest.mark.parametrize("rounds", [1, 9, 10, 11, 1000])
@pytest.mark.sampled(5)
def test_tables_fit_eighty_columns(agents: int, rounds: int, shown: Shown) -> None:
    """Any number of agents and rounds fits 80 columns, with every state and number whole."""
    lines = shown(results_of(rounds, agents))
    table = rows(lines)
    assert max(map(len, lines)) <= 80
    assert table["round"][0] == "1"
    assert table["round"][-1] == str(rounds)
    for place, state in enumerate(AgentState, start=1):
        assert table[state.value] == [f"{agents // place:,}"] * len(table["round"])


@pytest.mark.parametrize(
    ("asked", "answered", "told"),
    [
        (9, 0, ["No decision is the model's: all 9 fell back, so these results are those of the"]),
        (9, 4, ["Only 4 of 9 decisions are the model's: the others fell back."]),
        (8, 4, []),
        (0, 0, []),
    ],
)
def test_results_that_are_not_the_models_are_called_that(
    asked: int, answered: int, told: list[str], shown: Shown
) -> None:
    """Where more than half of the decisions fell back, a line says it in plain words."""
    results = results_of(decisions_asked=asked, decisions_answered=answered)
    lines = [line for line in shown(results) if " the model's: " in line]
    assert len(lines) == len(told)
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))


def test_a_long_reason_of_fallbacks_is_cut(shown: Shown) -> None:
    """A line of a raw reply is short, and names the command that has the rest where a log is."""
    reason = f"Odd: got {{'reply': '{'so ' * 90}"
    results = results_of(
        decisions_asked=7, fallbacks=Counter(Odd=7), fallback_examples={"Odd": reason}
    )
    (line,) = [line for line in shown(results) if "Fallback" in line]
    assert line.startswith("Fallback taken 7 x: Odd, such as: got {'reply': 'so so")
    assert line.endswith("...")
    assert len(line) < 200
    (line,) = [line for line in shown(results, Path("my runs/a")) if "Fallback" in line]
    assert line.endswith("... (prism log faults 'my runs/a' has the rest)")


def test_states_that_only_some_rounds_have_are_zero_elsewhere(shown: Shown) -> None:
    """A chart with regions has other configurations in each round; each has its row."""
    counts = [{"asleep": 3}, {"feed+fresh": 2, "feed+tired": 1}]
    rounds = [round_of(number, each) for number, each in enumerate(counts, 1)]
    table = rows(shown(Results(3, tuple(rounds), ())))
    assert table["asleep"] == ["3", "0"]
    assert table["feed+fresh"] == ["0", "2"]
    assert table["feed+tired"] == ["0", "1"]
