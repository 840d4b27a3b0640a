"""Wordings of a question by letter on a real model: the letters' mass, and what the order decides.

Four questions in three rotations each. The model is SmolLM2, or a file of llama.cpp's format that
the variable PRISM_MODEL names: ``PRISM_MODEL=m.gguf python -m tests.benchmarks --only wordings``.
A wording is useful if the letters have at least half of the probability, and good if the rotations
also lie near each other. ``best`` is the smallest figure of a row.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from types import SimpleNamespace
from typing import Any, NamedTuple

from prism import Model
from prism.reasoner import Cost, Question
from prism.reasoner.prompts import PromptSettings, letter_form, letter_prompt, letter_schema
from prism.reasoner.reasoner import farthest
from prism.reasoner.replies import LEAST_MASS, read_letter
from prism.reasoner.requests import Request, prompted
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table
from tests.kit.real_models import NAME, served


class Case(NamedTuple):
    """A question to a person."""

    chart: str
    persona: str
    situation: str
    options: Mapping[str, str]


QUESTIONS = (
    Case(
        "A street whose neighbours invite each other to parties.",
        "You are Ann, 34.",
        "There is a party tonight. 3 neighbours will come. Do you?",
        {"undecided": "decide later", "comes": "go to the party", "stays_home": "stay at home"},
    ),
    Case(
        "Farmers hear of solar panels from their neighbours.",
        "You are Bo, a farmer with little money.",
        "Solar panels cost 9000. Four of your six neighbours have some.",
        {"considers": "think about it", "adopts": "buy panels now", "rejects": "do without"},
    ),
    Case(
        "Parents are offered a measles vaccination for their child.",
        "You are Dee, a parent of one child.",
        "Two friends had their child vaccinated. You are offered an appointment.",
        {"accepts": "have it vaccinated", "waits": "decide later", "refuses": "say no"},
    ),
    Case(
        "People read posts on a social network.",
        "You are Cy. You love football.",
        "You decide what to do with this post.\n\nPost by Eve:\n  > What a match last night!",
        {"like": "like the post", "reply": "write a reply", "scroll": "scroll on"},
    ),
)

_HOW = "Respond with JSON only, with the letter of one option:"
_TASK = "Below you read who you are and what happens. Choose what you do next:"

Wording = Callable[[Case, str, Sequence[str]], str]
"""Returns the prompt of a question, from its list of options and their letters."""

WORDINGS: Mapping[str, Wording] = {
    "agent first, how to respond last": lambda case, options, letters: (
        f"{case.persona}\n\n{case.chart}\n\n{case.situation}\n\nChoose what you do next.\n\n"
        f"Options:\n{options}\n\n{_HOW}\n{letter_form(letters)}\n"
    ),
    "<letter> in the last line": lambda case, options, letters: (
        f"{case.chart}\n\n{_TASK}\n{options}\n\n{case.persona}\n\n{case.situation}\n\n"
        f'{_HOW}\n{{"letter": "<letter>"}}\n'
    ),
}

OURS = "prism's own"


def run(effort: Effort) -> list[Table]:
    """Measure every wording; a quick run measures prism's own alone."""
    path = os.environ.get("PRISM_MODEL")
    wordings = {OURS: _ours, **(WORDINGS if effort == FULL else {})}
    with served(None if path is None else Path(path)) as server:
        model = Model(NAME, [server.openai], server="openai", concurrency=1)
        results = asyncio.run(_measured(model, wordings))

    name = "SmolLM2-135M" if path is None else Path(path).name
    masses = [Measurement(each, tuple(mass)) for each, (mass, _) in results.items()]
    apart = [Measurement(each, tuple(distances)) for each, (_, distances) in results.items()]
    own = masses[0]
    usable = [
        Measurement(each.name, (sum(mass >= LEAST_MASS for mass in each.samples),))
        for each in masses
    ]
    claim = Claim("prism's own wording, least mass", own.best, own.median, "", at_least=LEAST_MASS)
    return [
        Table(f"{name}: probability of the letters together", "of 1", OURS, masses, [claim]),
        Table(f"{name}: questions that are usable", f"of {len(own.samples)}", OURS, usable),
        Table(f"{name}: distance between rotations of one question", "of 1", OURS, apart),
    ]


def _ours(case: Case, _options: str, letters: Sequence[str]) -> str:
    agent = SimpleNamespace(name="x", persona=lambda: case.persona, meanings=case.options)
    chart: Any = SimpleNamespace(description=case.chart)
    question = Question(agent, "", "", tuple(case.options), prompt=case.situation, chart=chart)
    return letter_prompt(question, PromptSettings(), letters)


async def _measured(
    model: Model, wordings: Mapping[str, Wording]
) -> dict[str, tuple[list[float], list[float]]]:
    """Return the masses of the letters, and the largest distances of rotations, by wording."""
    results = {}
    async with model.as_client() as client:
        for name, wording in wordings.items():
            masses: list[float] = []
            distances: list[float] = []
            for case in QUESTIONS:
                chances = []
                for number in range(len(case.options)):
                    mass, shares = await _answer(client, wording, case, number)
                    masses.append(mass)
                    chances += [shares] if shares else []
                distances.append(farthest(chances) if len(chances) > 1 else 1.0)
            results[name] = masses, distances

    return results


async def _answer(
    client: Any, wording: Wording, case: Case, number: int
) -> tuple[float, Mapping[str, float] | None]:
    """Return the mass of the letters, and the probabilities of the options if it is enough."""
    members = [*case.options.items()]
    turned = case._replace(options=dict([*members[number:], *members[:number]]))
    letters = dict(zip(ascii_uppercase, turned.options, strict=False))
    listed = "\n".join(f"{letter}: {turned.options[name]}" for letter, name in letters.items())
    text = wording(turned, listed, list(letters))
    request: Any = Request(prompted(text), letter_schema(letters), most_tokens=30, chances=True)
    reply = await client.ask(request, Cost())
    try:
        read = read_letter(reply.text, reply.tokens, letters)
    except ValueError:  # no letter within its tokens
        return 0.0, None
    return read.option_mass or 0.0, read.chances
