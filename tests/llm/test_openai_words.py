"""What a request to an OpenAI-compatible server says, and what is read from its reply."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import BadReplyError
from prism.llm import Model
from prism.llm._letters import LetteredChoice
from prism.llm._openai import OPENAI, read_completion, response_format
from prism.llm._settings import filled_in
from prism.testing import FakeOpenAI, Fault
from tests.kit.texts import ANY

DATA = Path(__file__).parents[1] / "data"
STATE = "Ann is tired."
OPTIONS = ["engaging_like", "engaging_reply", "composing"]
QUESTION = {
    "type": "choice",
    "instructions": "What now?",
    "criteria": dict(zip(OPTIONS, ["Like it", None, "Write"], strict=True)),
}


def token(text: str, chance: float = 1.0, **likeliest: float) -> dict[str, Any]:
    """Return a token as servers send it, with the likeliest in its place."""
    listed = [{"token": each, "logprob": math.log(p)} for each, p in likeliest.items()]
    return {"token": text, "logprob": math.log(chance), "top_logprobs": listed}


def reply(content: Any, tokens: Any = None, **more: Any) -> dict[str, Any]:
    """Return a reply to a chat."""
    choice = {"message": {"content": content}, "logprobs": {"content": tokens}}
    return {"choices": [choice], **more}


def read(text: str, *tokens: dict[str, Any]) -> dict[str, Any]:
    """Read the choice among `OPTIONS` in a reply of some tokens."""
    return LetteredChoice.of(STATE, QUESTION).read(read_completion(reply(text, list(tokens))))


def test_options_get_letters() -> None:
    """The prompt names each option once, by its meaning, and ends with the letters."""
    choice = LetteredChoice.of(STATE, QUESTION)
    assert choice.letters == dict(zip("ABC", OPTIONS, strict=True))
    assert choice.prompt == (
        "Ann is tired.\n\nWhat now?\n\nOptions:\nA: Like it\nB: engaging_reply\nC: Write\n\n"
        "Respond with JSON only, with the letter of one option:\n"
        '{"letter": "A, B or C"}\n'
    )
    assert choice.schema["properties"]["letter"]["enum"] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("count", "end"), [(1, '"A"'), (2, '"A or B"'), (4, '"A, B, C or D"'), (20, 'S or T"')]
)
def test_the_form_of_the_answer_has_as_many_letters_as_options(count: int, end: str) -> None:
    """The last line of the question lists the letters to choose from, each once."""
    criteria = {f"option_{number:02}": None for number in range(count)}
    choice = LetteredChoice.of(STATE, {**QUESTION, "criteria": criteria})
    assert choice.prompt.endswith(f"{end}}}\n")
    assert [choice.prompt.count(option) for option in criteria] == [1] * count


def test_a_reply_of_llama_cpp_is_read() -> None:
    """A reply that llama-cpp-python 0.3.36 gave, with a model of random weights and a grammar.

    Its tokens are single characters, and the likeliest in each place are capital letters.
    """
    recorded = (DATA / "llama_cpp_completion.json").read_text(encoding="utf-8")
    said = json.loads(recorded.replace("next_state", "letter"))
    found = LetteredChoice.of(STATE, QUESTION).read(read_completion(said))
    (place,) = [each for each in said["choices"][0]["logprobs"]["content"] if each["token"] == "A"]
    odds = {one["token"]: math.exp(one["logprob"]) for one in place["top_logprobs"]}
    assert found["choice"] == OPTIONS[0]
    assert found["option_mass"] == pytest.approx(odds["A"] + odds["B"] + odds["C"], abs=1e-6)
    # the grammar made it write a letter: it says nothing of how likely the options are
    assert found["option_mass"] < 0.5
    assert found["probabilities"] is None


WRAPPED = ["{}", ' "{}', '"{}"', '{}"}}', '":"{}', " {}", "▁{}", "Ġ{}", '{}"}}\n']


@pytest.mark.parametrize("form", WRAPPED)
def test_a_letter_is_found_however_it_is_cut_into_tokens(form: str) -> None:
    """Quotes, braces and spaces may be in one token with the letter, as tokenizers have it."""
    likeliest = {form.format("B"): 0.6, form.format("A"): 0.3, form.format("x"): 0.1}
    found = read(
        '{"letter": "B"}',
        token('{"letter'),
        token(form.format("B"), 0.6, **likeliest),
    )
    assert found["choice"] == "engaging_reply"
    assert found["probabilities"] == pytest.approx(
        {"engaging_like": 1 / 3, "engaging_reply": 2 / 3, "composing": 0.0}, abs=1e-12
    )
    assert found["confidence"] == pytest.approx(2 / 3)


def test_forms_of_one_letter_are_added_up() -> None:
    """A letter with and without a space before it are two tokens, and one option."""
    found = read("B", token("B", 0.4, **{"B": 0.4, " B": 0.2, " A": 0.4}))
    assert found["probabilities"] == pytest.approx(
        {"engaging_like": 0.4, "engaging_reply": 0.6, "composing": 0.0}, abs=1e-12
    )


def test_the_answer_counts_and_not_the_thoughts_before_it() -> None:
    """Of several tokens with the letter the last one is that of the answer."""
    found = read(
        '<think>B? Or A</think>{"letter": "B"}',
        token("B", 0.1, B=0.1, A=0.9),
        token("A", 0.5, A=0.5, B=0.5),
        token("B", 0.8, B=0.8, C=0.2),
    )
    assert found["probabilities"]["engaging_reply"] == pytest.approx(0.8)


def test_a_choice_that_is_not_among_the_likeliest_has_no_probability() -> None:
    """What a grammar forced on the model is its choice, and says nothing of how likely it is."""
    assert read("C", token("C", 0.1, A=0.6, B=0.3)) == {
        "choice": "composing",
        "option_mass": 1.0,
        "probabilities": None,
    }


@pytest.mark.parametrize(("mass", "has_chances"), [(0.0014, False), (0.49, False), (0.5, True)])
def test_options_without_half_of_the_mass_have_no_probabilities(
    mass: float, has_chances: bool
) -> None:
    """Where a model would rather say something else, its choice counts, and no probability."""
    found = read("A", token("A", mass / 2, A=mass / 2, B=mass / 4, C=mass / 4, x=1 - mass))
    assert found["choice"] == "engaging_like"
    assert found["option_mass"] == pytest.approx(mass)
    assert (found["probabilities"] is not None) == has_chances


@pytest.mark.parametrize(
    ("likeliest", "bound"),
    [
        # the last that is listed is likelier than what is left
        ({"A": 0.6, "B": 0.3}, 0.1),
        # what is left is more than the last that is listed
        ({"A": 0.6, "x": 0.01}, 0.01),
    ],
)
def test_an_option_that_is_not_listed_is_unknown_and_bounded(
    likeliest: dict[str, float], bound: float
) -> None:
    """It is as likely as the last that is listed or as what is left, whichever is less."""
    found = read("A", token("A", 0.6, **likeliest))["probabilities"]
    assert found["composing"] / found["engaging_like"] == pytest.approx(bound / 0.6)
    assert sum(found.values()) == pytest.approx(1)


@given(
    st.lists(st.floats(1e-6, 1), min_size=3, max_size=3),
    st.sampled_from("ABC"),
    # at a half the sum of floats is on either side
    st.floats(0, 0.49),
)
def test_probabilities_are_those_of_the_letters_alone(
    weights: list[float], letter: str, rest: float
) -> None:
    """Whatever goes to other tokens, those of the options sum to one in the same proportions."""
    total = sum(weights) / (1 - rest)
    chances = dict(zip("ABC", (weight / total for weight in weights), strict=True))
    found = read(letter, token(letter, chances[letter], **chances, x=max(rest, 1e-9)))
    assert list(found["probabilities"]) == OPTIONS
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    expected = [weight / sum(weights) for weight in weights]
    assert list(found["probabilities"].values()) == pytest.approx(expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(ANY, max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "logprobs", "token", "top_logprobs", "logprob"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON, JSON)
def test_whatever_a_server_sends_is_a_completion_or_a_value_error(
    whole: Any, content: Any, tokens: Any
) -> None:
    """No reply of any shape raises anything else, and what is read has the right types."""
    for body in (whole, {"choices": whole}, reply(content, tokens), reply("B", [tokens])):
        try:
            said = read_completion(body)
            assert isinstance(said.text, str)
            found = LetteredChoice.of(STATE, QUESTION).read(said)
        except ValueError:
            continue

        mass = found["option_mass"]
        assert found["choice"] in OPTIONS
        assert mass is None or 0 <= mass <= 1
        if found["probabilities"] is not None:
            assert sum(found["probabilities"].values()) == pytest.approx(1)


def test_tokens_without_alternatives_are_no_probabilities() -> None:
    """A server that gives the token's own log-probability alone gives none of the options."""
    assert read_completion(reply("B", [token("B", 0.5)])).tokens == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        ([{"type": "text", "text": "h"}, {"type": "image"}, {"type": "text", "text": "i"}], "hi"),
        (3, ""),
    ],
)
def test_a_text_may_come_in_parts(content: Any, text: str) -> None:
    """Content is a text or a list of parts; anything else says nothing."""
    assert read_completion(reply(content)).text == text


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}, False),
        ({"type": "object"}, False),
        ({"type": "string"}, False),
        ({}, False),
    ],
)
def test_a_schema_is_strict_only_if_that_changes_nothing(
    schema: dict[str, Any], strict: bool
) -> None:
    """Only a flat object whose members are all required is closed; others go as they are."""
    before = json.dumps(schema)
    sent = response_format(schema)["json_schema"]
    assert sent.get("strict", False) is strict
    closed = {"additionalProperties": False} if strict else {}
    assert sent["schema"] == {**schema, **closed}
    assert json.dumps(schema) == before


REFUSALS = [
    ("Unsupported parameter: 'reasoning_effort' is not supported.", "reasoning_effort"),
    ("response_format.type: Input should be 'text'", "response_format"),
    ("Failed to parse grammar", "response_format"),
    ("body -> logprobs: extra inputs are not permitted", "logprobs"),
    ("top_logprobs must be at most 5", "more than 5 top_logprobs"),
    ("http://10.0.0.5:80 answered 400: top_logprobs: unknown", "logprobs"),
    ("qwen does not support thinking", "chat_template_kwargs"),
    ("'temperature' does not support 0.0 with this model", "temperature"),
    ("Use 'max_completion_tokens' instead of max_tokens", "max_tokens"),
    ("the context is full", None),
]


@pytest.mark.parametrize(("message", "part"), REFUSALS)
def test_a_refusal_names_a_part(message: str, part: str | None) -> None:
    """What a server refuses is found by its words, if it was sent at all."""
    names = ("logprobs", "chat_template_kwargs", "reasoning_effort", "seed", "temperature")
    sent: dict[str, Any] = dict.fromkeys((*names, "max_tokens"))
    sent |= {"response_format": {"type": "json_schema"}, "top_logprobs": 20}
    settings = filled_in({})
    assert OPENAI.refused(message, sent, settings) == part
    assert OPENAI.refused(message, {"model": "tiny", "messages": []}, settings) is None


@pytest.mark.parametrize("beginning", [b"data: ", b"event: message\ndata: ", b": wait\n\ndata: "])
async def test_a_stream_that_was_not_asked_for_is_called_that(beginning: bytes) -> None:
    """A server that always streams is told by what it does, and is not asked twice."""
    body = beginning + b'{"choices": [{"delta": {"content": "Hello."}}]}\n\ndata: [DONE]\n\n'
    with FakeOpenAI() as server:
        stream = {"Content-Type": "text/event-stream"}
        server.fail_always(Fault.body(body, headers=stream))
        async with Model("llama3.2", server.url, server="openai") as model:
            with pytest.raises(BadReplyError, match=r"stream of events .* that was not asked for"):
                await model.as_client().chat([{"role": "user", "content": "Hello."}])
        assert server.asked == 1
