"""The exceptions prism raises."""

from pathlib import Path
from typing import Any

import pytest

from prism import errors
from prism.errors import InputError, LLMError, MissingExtraError


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (errors.DefinitionError, ValueError),
        (errors.FieldValueError, ValueError),
        (errors.FieldTypeError, TypeError),
        (errors.AgentError, TypeError),
        (errors.UnknownStateError, ValueError),
        (errors.RunawayError, RuntimeError),
        (errors.ReasonerError, ValueError),
        (errors.InputError, ValueError),
        (errors.MissingExtraError, ImportError),
        (errors.UnreachableError, ConnectionError),
        (errors.UnreachableError, LLMError),
        (errors.TimedOutError, TimeoutError),
        (errors.TimedOutError, LLMError),
        (errors.OverloadedError, LLMError),
        (errors.ModelMissingError, LLMError),
        (errors.BadReplyError, LLMError),
    ],
)
def test_errors_are_also_what_a_caller_expects(
    error: type[Exception], base: type[Exception]
) -> None:
    """An error is also the built-in one that fits it; failures of a model are one family."""
    assert issubclass(error, base)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({}, "give a number"),
        ({"path": "a.yaml"}, "a.yaml: give a number"),
        ({"path": Path("a.yaml"), "line": 3}, "a.yaml, line 3: give a number"),
        ({"path": "a.yaml", "line": 3, "field": "x"}, "a.yaml, line 3, field 'x': give a number"),
        ({"field": "x"}, "field 'x': give a number"),
    ],
)
def test_an_input_error_says_where(place: dict[str, Any], message: str) -> None:
    """An error in a file tells as much of the place as is known, then the problem; it has both."""
    error = InputError("give a number", **place)
    assert str(error) == message
    assert error.args == (message,)
    assert (error.problem, error.line, error.field) == (
        "give a number",
        place.get("line"),
        place.get("field"),
    )
    assert error.path == (str(place["path"]) if "path" in place else None)


def test_a_missing_extra_carries_the_install_command() -> None:
    """The error about a missing package names it and carries the commands that install it."""
    error = MissingExtraError("analysis", "polars")
    assert "'polars'" in str(error)
    assert "pip install 'prism-statecharts[analysis]'" in str(error)
    assert "pip install '.[analysis]'" in str(error)


def test_a_fault_of_an_applications_own_has_the_attributes_of_any() -> None:
    """A subclass whose __init__ says nothing of them has host, status and pause, too."""

    class OutOfInkError(LLMError):
        def __init__(self, pages: int) -> None:
            self.pages = pages

    fault = OutOfInkError(3)
    assert (fault.host, fault.retry_after, fault.status) == (None, None, 0)
