"""Documents read by their declarations."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from prism.files.declarations import Declaration, Listed, WholeNumber, read_document
from prism.files.source import DocumentError, Source


class Bound(Declaration):
    """A part of the document."""

    least: float
    most: float
    step: float | None = Field(None, gt=0)


class Arm(Declaration):
    """An entry of a list."""

    name: str = Field(min_length=1)
    kind: Literal["open", "closed"] = "open"
    source: str = Field("", alias="from")


class Plan(Declaration):
    """A document with every kind of value."""

    title: str | None = None
    seeds: Annotated[WholeNumber, Field(ge=1)] | Listed[WholeNumber] = 1
    bounds: dict[str, Bound | Annotated[Listed[float], Field(min_length=2, max_length=2)]] = Field(
        {}
    )
    arm: Listed[Arm] = ()
    deep: bool = False

    @model_validator(mode="after")
    def _refuse_untitled(self) -> "Plan":
        if self.deep and self.title is None:
            raise ValueError("needs a title to be deep")
        return self


WRONG = [
    ({"title": 3}, "title", "Input should be a valid string, got 3"),
    ({"titel": "x"}, "titel", "is unknown; did you mean 'title'?"),
    ({"zzz": "x"}, "zzz", "is unknown"),
    (
        {"seeds": 0},
        "seeds",
        "Input should be greater than or equal to 1 or Input should be a valid tuple, got 0",
    ),
    ({"seeds": [1, "x"]}, "seeds[1]", "Input should be a valid integer, got 'x'"),
    ({"bounds": {"a": {"least": 1}}}, "bounds.a.most", "is missing"),
    (
        {"bounds": {"a": {"least": 1, "most": float("inf")}}},
        "bounds.a.most",
        "Input should be a finite number, got inf",
    ),
    (
        {"bounds": {"a": {"least": 1, "most": 2, "steps": 1}}},
        "bounds.a.steps",
        "is unknown; did you mean 'step'?",
    ),
    ({"arm": [{"name": "x", "fron": "y"}]}, "arm[0].fron", "is unknown; did you mean 'from'?"),
    (
        {"arm": [{"name": "x", "kind": "shut"}]},
        "arm[0].kind",
        "Input should be 'open' or 'closed', got 'shut'",
    ),
    ({"deep": "yes"}, "deep", "Input should be a valid boolean, got 'yes'"),
    ({"deep": True}, None, "needs a title to be deep"),
]


@pytest.mark.parametrize(("document", "key", "message"), WRONG)
def test_a_wrong_value_is_refused_by_its_key(document, key, message):
    """What pydantic says stands under the key, with the value; a misspelt key is recognized."""
    with pytest.raises(DocumentError) as refused:
        read_document(Plan, Source.of(document))
    assert (refused.value.field, refused.value.problem) == (key, message)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"title": None},
        {"seeds": [3, 4.0]},
        {"bounds": {"a": [1, 2.5], "b": {"least": -1, "most": 2, "step": 0.5}}},
        {"arm": [{"name": "x", "from": "y", "kind": "closed"}]},
    ],
)
def test_a_right_document_is_read(document):
    """Whatever the declaration allows is read, whole numbers written as 3.0 included."""
    assert isinstance(read_document(Plan, Source.of(document)), Plan)


def test_all_problems_are_reported_at_once():
    """Four mistakes in four places are four problems with their lines."""
    text = "titel: x\nseeds: y\narm:\n  - kind: shut\n"
    with pytest.raises(DocumentError) as refused:
        read_document(Plan, Source.parse(text, "yaml", path="plan.yaml"))
    problems = [(problem.line, problem.key) for problem in refused.value.problems]
    assert problems == [(1, "titel"), (2, "seeds"), (4, "arm[0].kind"), (4, "arm[0].name")]


def test_very_many_problems_are_reported_in_seconds() -> None:
    """Telling what is wrong takes time in proportion to the document, not to its square."""
    with pytest.raises(DocumentError, match="and 950 more"):
        read_document(list[Bound], Source.of([{"least": "x", "most": 1.0}] * 10_000))


def test_a_value_of_any_depth_can_stand_in_a_message() -> None:
    """A value that Python cannot write out is told in brief."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DocumentError, match=r"least': Input should be a valid number, got \[+"):
        read_document(Bound, Source.of({"least": deep, "most": 1.0}))
    while deep:  # or the interpreter would fall as deep to free it
        deep = deep.pop()  # type: ignore[assignment]
