"""The exceptions prism raises."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from prism import errors
from prism.errors import InputError, LLMError, MissingExtraError

BUILT_IN = {
    "DefinitionError": ValueError,
    "FieldValueError": ValueError,
    "FieldTypeError": TypeError,
    "AgentError": TypeError,
    "UnknownStateError": ValueError,
    "RunawayError": RuntimeError,
    "ReasonerError": ValueError,
    "InputError": ValueError,
    "MissingExtraError": ImportError,
    "UnreachableError": ConnectionError,
    "TimedOutError": TimeoutError,
}
CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and cls.__module__ == errors.__name__
}


@pytest.mark.parametrize(("name", "built_in"), BUILT_IN.items())
def test_errors_are_also_what_a_caller_expects(name: str, built_in: type[Exception]) -> None:
    """Each error also derives from the built-in exception that fits it."""
    assert issubclass(CLASSES[name], built_in)


@pytest.mark.parametrize(
    "name",
    ["UnreachableError", "TimedOutError", "OverloadedError", "ModelMissingError", "BadReplyError"],
)
def test_failures_of_a_model_are_one_family(name: str) -> None:
    """Whatever keeps a model from answering can be caught as LLMError."""
    assert issubclass(CLASSES[name], LLMError)


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
