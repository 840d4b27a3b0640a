"""What ends a run in a step is told with its file, line, function and agent."""

from pathlib import Path
from typing import Any

import pytest

from prism.errors import SimulationError
from prism.worlds import Run
from tests.columns.written import town

REST = """
def rest(self, person: Person) -> float:
    return 1.0 / person.seen
"""
FAULTS: dict[str, tuple[type[Exception], str, str]] = {
    "x = 1 // person.counted": (ZeroDivisionError, "division by zero", "Town.step"),
    "x = self.rest(person)": (ZeroDivisionError, "division by zero", "Town.rest"),
    "x = person.random.exponential(-1.0 - person.seen)": (
        SimulationError,
        "outside the domain",
        "Town.step",
    ),
    "x = (person.counted + 2 ** 62) * 8": (SimulationError, "more than 64 bits", "Town.step"),
    "x = self.rate * (person.counted + 2 ** 60)": (SimulationError, "above 2", "Town.step"),
}


@pytest.mark.parametrize("step", FAULTS)
def test_a_fault_says_where_it_is(step: str, tmp_path: Path) -> None:
    """The line is that of the user's file, in whichever function of the world it is."""
    error, why, function = FAULTS[step]
    run: Run[Any] = Run(town(step, tmp_path, kind="def", more=REST), 5, seed=1, columns=True)
    with pytest.raises(error, match=why) as caught:
        run.run()
    (place, about) = caught.value.__notes__
    file, line, told = place.split(":", 2)
    text = Path(file).read_text().splitlines()[int(line.partition(",")[0]) - 1].strip()
    assert told == f" {text}"
    assert line.endswith(f", in {function}")
    assert "in the step of <Person person_1" in about
