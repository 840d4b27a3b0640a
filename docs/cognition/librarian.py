"""Plays a small model that keeps ten facts, loses them from its memory, and is asked about one.

It decides by what its prompt says, and by no more: by the news, its working memory, what its last
action led to, and what storage has. It is as sloppy as models of three billion parameters are: it
forgets tags, writes tool calls and prose, asks twice for the same, and gets names wrong.
"""

import json
import re
from typing import Any

FACTS = (
    ("north lighthouse", "The north lighthouse was built in 1811 by Robert Stevenson."),
    ("ferry", "The ferry leaves at seven and at noon, but never on Sundays."),
    ("bakery", "The bakery on Harbour Street belongs to Ines, who came from Porto."),
    ("school", "The school has forty-one pupils and two teachers."),
    ("storm", "The great storm of 1953 took the old pier away."),
    ("doctor", "The doctor comes from the mainland on the first Tuesday of each month."),
    ("well", "The well behind the church has never run dry."),
    ("wreck", "The wreck of the Adelaide lies in eleven metres of water."),
    ("museum", "The museum keeps a whale's jaw and the harbour master's diaries."),
    ("goats", "The goats on the hill are descended from six that swam ashore."),
)
"""What the agent is told, with the name that it gives to each."""

QUESTION = "Question: who owns the bakery, and where did she come from?"


def write(prompt: str, *_about: Any) -> str:
    """Reply to a prompt of the agent, as `prism.testing.FakeOllama` asks for it.

    Args:
        prompt: The prompt.
    """
    if "Question: " in prompt.partition("<news>")[2] and "<news>" in prompt:
        return _answers(prompt)

    return _keeps(prompt)


def _keeps(prompt: str) -> str:
    """Keep the fact of the news in storage."""
    fact = _element(prompt, "new")
    name = next((name for name, text in FACTS if text == fact), "")
    if "You are in the state thinking" in prompt:
        if not fact:
            return _thinks("There is nothing new to me.", "thinking")
        return _thinks(f"I should keep what is new about the {name}.", "executing")

    given = {"tags": name, "value": fact}
    place = len(name) % 3
    if place == 0:  # a tool call, as Qwen writes it
        return f"<tool_call>{json.dumps({'name': 'storage_save', 'arguments': given})}</tool_call>"
    if place == 1:  # JSON in a fence
        return f"```json\n{json.dumps({'action': {'type': 'storage_save', **given}})}\n```"

    parts = "".join(f"<{part}>{text}</{part}>" for part, text in given.items())
    return f"Sure!\n<agent><action><type>storage_save</type>{parts}</action></agent>"


def _answers(prompt: str) -> str:
    """Look for what is asked, first under a wrong name, and then by words."""
    last = prompt.rpartition("<last_action>")[2]
    found = re.search(r'<memory tag="[^"]*">([^<]*Ines[^<]*)</memory>', prompt)
    if "You are in the state thinking" in prompt:
        if found:
            return _thinks(f"The answer: {found[1]}", "executing")
        # without the last tag, as such models write it
        return _thinks("Who owns the bakery?", "executing").removesuffix("</agent>")
    if found:
        return json.dumps({"name": "answer", "arguments": {"text": found[1]}})
    if "there is no" in last:
        return json.dumps({"name": "storage_search", "arguments": {"tags": "bakery owner"}})

    return "<agent><action><type>storage_load</type><tags>bakery owner</tags></action></agent>"


def _thinks(thought: str, state: str) -> str:
    return f"<agent><next_state>{state}</next_state><thinking_log>{thought}</thinking_log></agent>"


def _element(prompt: str, name: str) -> str:
    found = re.findall(rf"<{name}>([^<]*)</{name}>", prompt)
    return found[-1] if found else ""
