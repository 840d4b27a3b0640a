"""What agents of the feed remember: posts that they saw, what they did, what they wrote."""

from pathlib import Path
from typing import Any

import pytest

from prism.runs import ModelOptions
from prism.social import SocialRun
from prism.testing import FakeOllama
from tests.kit.servers import chats_of
from tests.kit.worlds import run_in


def prompts_of(folder: Path, stops: list[int], **options: Any) -> list[str]:
    """Return the prompts of a feed that is resumed after some rounds."""
    with FakeOllama(
        choose=lambda asked: asked.options[sum(map(ord, asked.prompt)) % len(asked.options)]
    ) as server:
        model = ModelOptions("llama3.2", (server.host,), mode="chat", **options)
        run_in(folder, SocialRun(25, rounds=5, seed=3, reasoner=model, preset="classic"), stops)
        return sorted(chat["messages"][0]["content"] for chat in chats_of(server))


@pytest.mark.slow
def test_a_resumed_feed_asks_what_it_would_have_asked(tmp_path: Path) -> None:
    """Stopped after every round, a feed has the same prompts, which tell posts seen and written."""
    whole = prompts_of(tmp_path / "whole", [], remember=4)
    assert prompts_of(tmp_path / "parts", [1, 2, 3, 4], remember=4) == whole
    for did in ("scrolled on.", "liked it.", 'replied: "', 'posted yourself: "'):
        assert any(f"and {did}" in prompt for prompt in whole), did


@pytest.mark.parametrize("remembers", [None, 3])
def test_the_contracts_prompt_is_around_what_is_remembered(
    remembers: int | None, tmp_path: Path
) -> None:
    """Memories stand behind the post; without them the prompt is the contract's to the letter."""
    prompts = prompts_of(tmp_path / "run", [], remember=remembers)
    cut = [prompt.partition("What you remember")[0] for prompt in prompts]
    assert (cut != prompts) is (remembers is not None)
    assert all("Topics: " in prompt and ", a social media user." in prompt for prompt in cut)
