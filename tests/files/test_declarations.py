"""Documents read by their declarations, and the schemas made from these."""

from typing import Annotated, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field, model_validator

from prism.files._source import DocumentError, Source
from prism.files.declarations import (
    AnyText,
    Declaration,
    Listed,
    Optionally,
    WholeNumber,
    read_document,
    schema_of,
)


class Bound(Declaration):
    """A part of the document."""

    least: float
    most: float
    step: Optionally[float] = Field(None, gt=0)


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
    ({"title": 3}, "title", "must be text, got 3; put it in quotes"),
    ({"titel": "x"}, "titel", "is unknown; did you mean 'title'?"),
    ({"zzz": "x"}, "zzz", "is unknown; known are title, seeds, bounds, arm, deep"),
    ({"seeds": 0}, "seeds", "must be at least 1 or a list, got 0"),
    ({"seeds": True}, "seeds", "must be a whole number or a list, got true"),
    ({"seeds": 2.5}, "seeds", "must be a whole number or a list, got 2.5"),
    ({"seeds": [1, "x"]}, "seeds[1]", "must be a whole number, got 'x'"),
    ({"seeds": None}, "seeds", "must be a whole number or a list, got nothing"),
    ({"bounds": {"a": {"least": 1}}}, "bounds.a.most", "is missing"),
    (
        {"bounds": {"a": {"least": 1, "most": float("inf")}}},
        "bounds.a.most",
        "must be a finite number, got inf",
    ),
    (
        {"bounds": {"a": {"least": 1, "most": 2, "step": 0}}},
        "bounds.a.step",
        "must be above 0, got 0",
    ),
    (
        {"bounds": {"a": {"least": 1, "most": 2, "step": None}}},
        "bounds.a.step",
        "must be a number, got nothing",
    ),
    (
        {"bounds": {"a": {"least": 1, "most": 2, "steps": 1}}},
        "bounds.a.steps",
        "is unknown; did you mean 'step'?",
    ),
    ({"arm": [{"name": ""}]}, "arm[0].name", "must not be empty"),
    ({"arm": [{"name": "x", "fron": "y"}]}, "arm[0].fron", "is unknown; did you mean 'from'?"),
    (
        {"arm": [{"name": "x", "kind": "shut"}]},
        "arm[0].kind",
        "must be 'open' or 'closed', got 'shut'",
    ),
    ({"arm": ["x"]}, "arm[0]", "must be a mapping of keys, got 'x'"),
    ({"deep": "yes"}, "deep", "must be true or false, got 'yes'"),
    ({"deep": True}, None, "needs a title to be deep"),
    ([], None, "must be a mapping of keys, got []"),
]


@pytest.mark.parametrize(("document", "key", "message"), WRONG)
def test_a_wrong_value_is_refused_by_its_key(document, key, message):
    """Each kind of mistake is reported in plain words, under the key where it stands."""
    with pytest.raises(DocumentError) as refused:
        read_document(Plan, Source.of(document))
    assert (refused.value.field, refused.value.problem) == (key, message)


RIGHT = [
    {},
    {"title": None},
    {"seeds": 3.0},
    {"seeds": [3, 4.0]},
    {"bounds": {"a": [1, 2.5], "b": {"least": -1, "most": 2, "step": 0.5}}},
    {"arm": [{"name": "x", "from": "y", "kind": "closed"}]},
]


@pytest.mark.parametrize("document", RIGHT)
def test_a_right_document_is_read(document):
    """Whatever the declaration allows is read, whole numbers written as 3.0 included."""
    assert isinstance(read_document(Plan, Source.of(document)), Plan)


@pytest.mark.parametrize("document", [*RIGHT, *(each for each, _, _ in WRONG)])
@pytest.mark.sampled(6)
def test_the_schema_accepts_what_the_reader_does(document):
    """A validator of another make agrees, but for what a schema cannot say."""
    beyond_schemas = document == {"deep": True} or "inf" in str(document)
    is_right = Draft202012Validator(schema_of(Plan, title="A plan")).is_valid(document)
    assert is_right is (document in RIGHT or beyond_schemas)


def test_all_problems_are_reported_at_once():
    """Three mistakes in three places are three problems with their lines."""
    text = 'titel = "x"\nseeds = "y"\n[[arm]]\nkind = "shut"\n'
    with pytest.raises(DocumentError) as refused:
        read_document(Plan, Source.parse(text, "toml", path="plan.toml"))
    found = [(problem.line, problem.key) for problem in refused.value.problems]
    assert found == [(1, "titel"), (2, "seeds"), (3, "arm[0].name"), (4, "arm[0].kind")]


def test_checks_look_at_documents_of_the_right_shape():
    """What contradicts itself is reported by its place, after the shape alone is right."""

    def check(plan):
        for place, arm in enumerate(plan.arm):
            if arm.name == "x":
                yield ("arm", place, "name"), "is taken"

    document = {"arm": [{"name": "y"}, {"name": "x"}]}
    with pytest.raises(DocumentError, match=r"arm\[1\].name': is taken"):
        read_document(Plan, Source.of(document), checks=[check])


def test_a_schema_has_no_noise():
    """A published schema has bounds by their names in JSON Schema, no titles, no null defaults."""
    schema = schema_of(Plan, title="A plan", name="plan.schema.json")
    assert schema["$id"] == "plan.schema.json"
    assert schema["properties"]["seeds"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert schema["$defs"]["Bound"]["properties"]["step"] == {
        "type": "number",
        "exclusiveMinimum": 0,
    }


def test_half_a_surrogate_pair_is_a_text_where_it_is_declared() -> None:
    """JSON can write one; a number in its place is refused in the same words as elsewhere."""
    assert read_document(dict[AnyText, AnyText], Source.of({"\ud800": "\udc00"}))
    with pytest.raises(DocumentError, match="must be text, got 3; put it in quotes"):
        read_document(list[AnyText], Source.of([3]))


def test_very_many_problems_are_told_in_seconds() -> None:
    """Telling what is wrong takes time in proportion to the document, not to its square."""
    with pytest.raises(DocumentError, match="has 10000 problems"):
        read_document(list[Bound], Source.of([{"least": "x", "most": 1.0}] * 10_000))


def test_a_value_of_any_depth_can_be_told() -> None:
    """A value that Python cannot write out is told in brief."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(DocumentError, match=r"least': must be a number, got \[+"):
        read_document(Bound, Source.of({"least": deep, "most": 1.0}))
    while deep:  # or the interpreter would fall as deep to free it
        deep = deep.pop()  # type: ignore[assignment]
