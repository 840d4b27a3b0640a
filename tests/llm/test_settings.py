"""The settings of a model, which are declared once."""

from typing import Any

import pytest

from prism.errors import InputError
from prism.llm import Model


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -0.1}, "temperature.*equal to 0"),
        ({"temperature": float("nan")}, "temperature.*finite"),
        ({"temperature": "hot"}, "temperature.*valid number"),
        ({"concurrency": 1.5}, "concurrency.*valid integer"),
        ({"concurrency": True}, "concurrency.*valid integer"),
        ({"timeout": 0}, "timeout.*equal to 0.01"),
        ({"patience": -1}, "patience.*equal to 0"),
        ({"mode": "loud"}, "mode.*should be 'auto' or 'chat'"),
        ({"hosts": 1}, "hosts.*a list of texts"),
        ({"hosts": (1,)}, "hosts.*a text"),
        ({"price_in": -0.1}, "price_in.*equal to 0"),
        ({"price_out": "cheap"}, "price_out.*valid number"),
        ({"think": "deeply"}, "think.*one of false, true, low"),
        ({"key": "sk-123"}, "key.*must be the name of the environment variable"),
        ({"stop_at_fallbacks": 0}, "stop_at_fallbacks.*greater than 0"),
        ({"stop_at_fallbacks": 1.5}, "stop_at_fallbacks.*equal to 1"),
        ({"max_calls": 0}, "max_calls.*equal to 1"),
        ({"deadline": 0}, "deadline.*equal to 0.01"),
    ],
)
def test_invalid_values_are_refused(given: dict[str, Any], message: str) -> None:
    """Values that a setting's declaration does not allow are refused when the model is made."""
    with pytest.raises(InputError, match=message) as caught:
        Model("tiny", **given)
    # it may be the key itself
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize("value", [-1, 300, 0.5, "0", "5m", "-1m", "1h30m", "1.5h"])
def test_ollamas_durations_are_taken_as_they_are(value: float | str) -> None:
    """Numbers are seconds, and texts have units, as Ollama itself takes them."""
    assert Model("tiny", keep_alive=value).keep_alive == value


@pytest.mark.parametrize("value", ["", "300", "-1", "5 m", "soon", "1d", True, float("inf"), 1e12])
def test_what_ollama_would_refuse_is_refused_when_the_model_is_made(value: Any) -> None:
    """A duration that Ollama cannot read is named before a run begins."""
    with pytest.raises(InputError, match=r"keep_alive.*a number of seconds, or a text with units"):
        Model("tiny", keep_alive=value)
