"""Telling prompts apart in a log that does not hold them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from prism.statechart.reasoner._prompts import PromptSettings, Request, chat_prompt
from prism.statechart.reasoner._questions import Question

_DIGITS = 16


def hash_of(prompt: str) -> str:
    """Return the beginning of the SHA-256 of a prompt."""
    # a text of the user's may have what no UTF-8 has
    return sha256(prompt.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def prompt_hash(question: Question, settings: PromptSettings) -> str | None:
    """Return the hash of a question's prompt; None if it has none.

    It is of the prompt of a chat, also where a model is asked for probabilities, so that it does
    not depend on what a server offers.
    """
    try:
        return hash_of(chat_prompt(question, settings))
    except Exception:  # of the user's agent or post; asking says what is wrong
        return None


def hashed(
    requests: Iterable[Request], settings: PromptSettings, hashes: dict[int, str | None]
) -> Iterator[Request]:
    """Yield requests, and note the hashes of their prompts by the questions' places."""
    for request in requests:
        is_chat = request.kind == "chat"
        for place, question in zip(request.places, request.questions, strict=True):
            if request.fault is None:
                same = hash_of(request.text) if is_chat else prompt_hash(question, settings)
                hashes[place] = same

        yield request
