"""A row of a database goes on in the state that it was saved in."""

from collections.abc import Callable
from types import ModuleType

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

Load = Callable[..., ModuleType]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("sqlalchemy")


def test_the_class_worked_before(load: Load) -> None:
    """Without prism, it is a mapped class like any other."""
    before = load("sqlalchemy", "-")
    assert before.Walker(id=1, patience=3).patience == 3


def test_a_row_is_saved_with_its_state(guide: ModuleType) -> None:
    """A new row has the first state; a loaded one fires from the state it was saved in."""
    engine = create_engine("sqlite://")
    guide.Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(guide.chart.adopt(guide.Walker(id=1, patience=3)))
        session.commit()
    for force, state in ((2, "calm"), (4, "angry")):
        with Session(engine) as session:
            guide.chart.fire(session.get_one(guide.Walker, 1), "bumped", force)
            session.commit()
        with Session(engine) as session:
            walker = session.get_one(guide.Walker, 1)
            assert (walker.state.value, walker.ticks_in_state) == (state, 0)
            assert not walker.state_history
    engine.dispose()
