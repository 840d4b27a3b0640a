"""Rows of Django, whose classes get their fields after they have been made."""

from enum import StrEnum
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connection, models

from prism.agents import StatechartMixin
from prism.statechart import Statechart, Transition

pytestmark = pytest.mark.slow


Mood = StrEnum("Mood", ["CALM", "CROSS"])
"""States of a row."""


CHART = Statechart(
    Mood,
    [
        Transition("bumped", Mood.CALM, Mood.CROSS, action=lambda row, context: None),
        Transition("apology", Mood.CROSS, Mood.CALM),
    ],
    Mood.CALM,
)


@pytest.fixture(scope="module", autouse=True)
def _database() -> None:
    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )
    django.setup()


@pytest.mark.parametrize("bases", [(), (StatechartMixin,)], ids=["plain", "mixin"])
def test_a_row_is_saved_loaded_and_filtered_by_its_state(bases: tuple[type, ...]) -> None:
    """Its column is what moves: text that stays text, beside Django's own ``_state``."""
    row: Any = type(
        f"Row{len(bases)}",
        (*bases, models.Model),
        {
            "__module__": __name__,
            "state_type": Mood,
            "state": models.CharField(max_length=9, default="calm"),
            "ticks_in_state": models.IntegerField(default=0),
            "Meta": type("Meta", (), {"app_label": "moods"}),
        },
    )
    with connection.schema_editor() as editor:
        editor.create_model(row)
    row().save()
    for event, state, ticks in (("bumped", "cross", 1), ("apology", "calm", 1)):
        loaded = row.objects.get()
        assert CHART.fire(loaded, event) is Mood(state)
        CHART.tick(loaded)
        loaded.save()
        again = row.objects.get(state=state)
        assert (again.state, type(again.state), again.ticks_in_state) == (state, str, ticks)
        assert type(loaded.state) is str
    assert CHART.machine.events["bumped"].trigger(again)
    assert (again.state, type(again.state)) == ("cross", str)
