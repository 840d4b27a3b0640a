"""What fits into the window of a model, and by what one sees that a prompt was cut."""

import logging
from typing import Any

import pytest

from prism.errors import BadReplyError, LLMError, PromptTooLongError
from prism.llm import Model
from prism.llm._window import (
    Prompt,
    was_cut,
    window_in_models,
    window_in_props,
    window_in_running,
)
from prism.reasoner._faults import refuses_length
from prism.testing import FakeOllama, FakeOpenAI
from prism.testing._server.tokens import count_tokens

LONG = [{"role": "user", "content": "The agent reads a post about music. " * 60}]
SHORT = [{"role": "user", "content": "Choose a state: idle or scrolling."}]


@pytest.mark.parametrize("count", [0, None, -1, "many"])
def test_a_count_of_nothing_says_nothing(count: object) -> None:
    """Some servers report no tokens, or none where the prompt was cached."""
    assert not was_cut(Prompt(LONG), count, 500)


@pytest.mark.parametrize(
    ("count", "window", "cut"),
    [(1005, 2000, True), (1006, 2000, False), (995, 2000, True), (1001, 2000, True)],
)
def test_a_count_near_half_of_the_window_shows_a_cut(count: int, window: int, cut: bool) -> None:
    """It is within 5 of the half, and the estimate well above it."""
    # beyond ASCII, so that nothing else shows it
    prompt = Prompt([{"content": "한" * 2800}])
    assert was_cut(prompt, count, window) == cut


def test_a_count_far_below_the_estimate_shows_a_cut() -> None:
    """Without a window, the count has to be below 1/1.7 of the estimate."""
    prompt = Prompt(LONG)
    bound = prompt.tokens / 1.7
    assert was_cut(prompt, int(bound) - 1, None)
    assert not was_cut(prompt, int(bound) + 1, None)


def test_a_prompt_that_fits_into_the_told_window_was_not_cut() -> None:
    """Some tokenizers need less than half of the estimate."""
    prompt = Prompt(LONG)
    assert not was_cut(prompt, prompt.tokens // 3, 2 * prompt.tokens)
    assert was_cut(prompt, prompt.tokens // 3, 2 * prompt.tokens, is_told=False)


@pytest.mark.parametrize("text", ["인공지능은 흥미롭다. ", "هذا نص طويل جدا. ", "12345678 "])
def test_a_count_of_text_beyond_ascii_is_no_alarm_where_the_window_is_unknown(text: str) -> None:
    """A third of the estimate is what good tokenizers need."""
    prompt = Prompt([{"content": text * 100}])
    assert not was_cut(prompt, int(prompt.tokens / 2.2), None)


def test_a_letter_that_is_repeated_is_no_alarm_where_the_window_is_unknown() -> None:
    """Tokenizers read eight of it as one token, and the estimate takes each for half of one."""
    assert not was_cut(Prompt([{"content": "x" * 900}]), 900 // 8, None)


def test_a_short_prompt_is_no_alarm_where_the_window_is_unknown() -> None:
    """Stand-ins count words."""
    assert not was_cut(Prompt(SHORT), 1, None)


def test_the_reply_has_a_quarter_of_the_window_by_default() -> None:
    """A limit of its own goes before."""
    pools = [
        Model("tiny", ["http://127.0.0.1:1"], window=window, reply_tokens=reply).as_client()
        for window, reply in ((None, None), (400, None), (400, 7))
    ]
    assert [pool.servers[0].settings["reply_tokens"] for pool in pools] == [None, 100, 7]


def test_windows_are_read_where_servers_tell_them() -> None:
    """VLLM, llama.cpp and Ollama do; what is damaged is unknown."""
    assert window_in_models({"data": [{"id": "m", "max_model_len": 9}]}, "m") == (9, True)
    trained = {"data": [{"id": "x", "meta": {"n_ctx_train": 8}}]}
    assert window_in_models(trained, "m") == (8, False)
    assert window_in_models({"data": [{"id": "m"}, {"id": "x"}]}, "m") == (None, True)
    assert window_in_models("no", "m") == (None, True)
    assert window_in_props({"default_generation_settings": {"n_ctx": 7}}) == (7, True)
    assert window_in_props([]) == (None, True)
    running = {"models": [{"model": "m:latest", "context_length": 6}]}
    assert (window_in_running(running, "m"), window_in_running(running, "x")) == (
        (6, True),
        (None, True),
    )


@pytest.mark.parametrize(
    ("message", "is_one"),
    [
        ("This model's maximum context length is 120 tokens", True),
        ("the request exceeds the available context size, try increasing it", True),
        ("Unsupported parameter: 'max_tokens'", False),
    ],
)
def test_refusals_of_the_length_are_told_from_others(message: str, is_one: bool) -> None:
    """Only these are about the window."""
    error = LLMError(f"http://gpu1:8000 answered 400: {message}", status=400)
    assert refuses_length(error) == is_one


async def test_ollama_is_told_one_window_and_loads_once() -> None:
    """The request that loads the model asks for the same window as the questions."""
    with FakeOllama(window=120) as server:
        async with Model("llama3.2", [server.host], window=2048).as_client() as pool:
            assert list((await pool.warm_up()).values()) == [None]
            await pool.chat(LONG)
            await pool.chat(SHORT)

        assert [question.body["options"]["num_ctx"] for question in server.questions] == [2048] * 2
        assert [q.body["options"]["num_predict"] for q in server.questions] == [512] * 2
        assert (server.loads, server.cuts) == (1, 0)


async def test_nothing_is_told_where_no_window_is_asked_for(server: FakeOllama) -> None:
    """Any figure could load the model again."""
    async with Model("tiny", [server.host]).as_client() as pool:
        await pool.chat(SHORT)

    assert sorted(server.questions[-1].body["options"]) == ["seed", "temperature"]


async def test_a_cut_prompt_is_a_fault_and_the_next_is_not_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A warning for the host says what to set, once."""
    with FakeOllama(window=120) as server:
        async with Model("llama3.2", [server.host]).as_client() as pool:
            with caplog.at_level(logging.WARNING, "prism.llm"):
                with pytest.raises(PromptTooLongError, match=r"half of its window of 120: .* cut"):
                    await pool.chat(LONG)
                with pytest.raises(PromptTooLongError, match=r"is not asked: about .* by "):
                    await pool.chat(LONG)

        assert server.asked == 1
    assert [record.getMessage().count("--window") for record in caplog.records] == [1]


@pytest.mark.parametrize("dialect", ["ollama", "openai"])
async def test_a_prompt_that_is_too_long_is_one_fault_in_both_dialects(dialect: Any) -> None:
    """Whether the server cuts it, as Ollama does, or refuses it."""
    fake = FakeOllama if dialect == "ollama" else FakeOpenAI
    with fake(window=120) as server:
        async with Model("llama3.2", [server.host], server=dialect).as_client() as pool:
            with pytest.raises(PromptTooLongError):
                await pool.chat(LONG)
            with pytest.raises(PromptTooLongError, match="is not asked"):
                await pool.chat(LONG)


async def test_the_smaller_of_two_windows_counts() -> None:
    """Whatever the user has set, what the server has no room for is not asked a second time."""
    with FakeOpenAI(window=120) as server:
        model = Model("llama3.2", [server.host], server="openai", window=100_000, reply_tokens=9)
        async with model.as_client() as pool:
            with pytest.raises(PromptTooLongError, match="refuses the prompt"):
                await pool.chat(LONG)
            with pytest.raises(PromptTooLongError, match="is not asked"):
                await pool.chat(LONG)
            assert pool.servers[0].window.tokens == 120


async def test_an_empty_reply_that_ran_out_of_tokens_says_so() -> None:
    """There is no room for it, or a thinking model has used it up."""
    window = count_tokens(SHORT[0]["content"]) + 4
    with FakeOllama(window=window) as server:
        async with Model("llama3.2", [server.host]).as_client() as pool:
            with pytest.raises(BadReplyError, match="empty reply; it ran out of tokens, after 0 t"):
                await pool.chat(SHORT)
