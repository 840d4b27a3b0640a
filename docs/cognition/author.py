"""Plays the model of the example: an author who plans a story, and is as sloppy as models are.

What it replies depends on the prompt alone: the last number in the log says how far the plan is.
"""

import re
from typing import Any

PLAN: tuple[tuple[str, str, str, str], ...] = (
    (
        "First the setting, on which everything rests.",
        "working_memory_add",
        "setting",
        "The last night train from Lisbon to Hendaye, in the November before the line is closed. "
        "Nine carriages, of which two are lit; rain on the windows; a timetable that nobody "
        "trusts, and a clock in the dining car that is eleven minutes slow.",
    ),
    (
        "Next the woman who tells the story.",
        "working_memory_add",
        "character Alba",
        "Alba, 61, sleeping-car attendant for thirty-four years. She knows every sound of the "
        "train, has never told anybody why she stayed on it, and carries a key that opens no "
        "door any more.",
    ),
    (
        "She needs somebody who wants something of her.",
        "working_memory_add",
        "character Teo",
        "Teo, 19, travels without a ticket. He looks for the man in a photograph that was taken "
        "in this dining car in 1989, and believes that the man is his grandfather.",
    ),
    (
        "And somebody who stands in the way.",
        "working_memory_add",
        "character Inspector",
        "Inspector Ruas, who closes lines for the ministry. Polite, tired, always first to know "
        "the hour. He has to count the passengers tonight, and every passenger that he does not "
        "find makes his report easier.",
    ),
    (
        "Chapter one: departure, in the setting as it stands.",
        "working_memory_add",
        "chapter 1",
        "Alba lets Teo in by the wrong door. The train leaves eleven minutes late by one clock "
        "and on time by the other. Ruas counts twelve passengers and writes down eleven.",
    ),
    (
        "Chapter two: the photograph in the dining car.",
        "working_memory_add",
        "chapter 2",
        "Teo shows the photograph to the cook, who says that he knows nobody in it, and then "
        "sets three places at the table where it was taken. Alba sees herself in the picture.",
    ),
    (
        "The plan of the chapters is worth keeping, whatever happens to the notes.",
        "storage_save",
        "outline",
        "1 departure, 2 the photograph, 3 the count, 4 the key, 5 the bridge, 6 arrival",
    ),
    (
        "Chapter three: Ruas counts again. Who is character Inspector to Alba?",
        "working_memory_add",
        "chapter 3",
        "Ruas counts again at midnight and finds thirteen. He asks Alba to explain, she asks him "
        "to sit down. He was a boy in the carriage that night, and she had hidden him.",
    ),
    (
        "Chapter four turns on the key, so who was Alba, with her key that opens no door?",
        "storage_load",
        "character Alba",
        "",
    ),
    (
        "Now chapter four: the key and the locked compartment.",
        "working_memory_add",
        "chapter 4",
        "The key opens the compartment that has been locked since 1989. In it lie a suitcase, a "
        "timetable with one line struck out, and the other half of the photograph.",
    ),
    (
        "Chapter five, on the bridge. Teo has to choose.",
        "working_memory_add",
        "chapter 5",
        "The train stops on the bridge because the signal is dark. Teo could leave with the "
        "suitcase; he stays, and reads its letters aloud to the two who were there.",
    ),
    (
        "The last chapter needs the setting again: the two clocks in the dining car.",
        "working_memory_add",
        "chapter 6",
        "Arrival. Ruas sets the clock in the dining car right, then slow again, and writes down "
        "that the train was full. Alba gives Teo the key.",
    ),
    (
        "The plan is complete. I keep the ending with the outline.",
        "storage_save",
        "chapter 6",
        "",
    ),
)
"""What is thought, and the type, tags and value of the action that follows."""


def write(prompt: str, *_about: Any) -> str:
    """Reply to a prompt of the agent, as `prism.testing.FakeOllama` asks for it.

    Args:
        prompt: The prompt.
    """
    numbers = re.findall(r'<thought key="thinking_log_(\d+)"', prompt)
    done = int(numbers[-1]) if numbers else 0
    if "You are in the state thinking" in prompt:
        return _thinks(done)

    return _acts(done)


def _thinks(done: int) -> str:
    if done >= len(PLAN):
        # an action has no place here: it is not carried out, and the log says so
        return f"<agent><next_state>thinking</next_state>{_action('storage_save', 'plan')}</agent>"

    thought = PLAN[done][0]
    reply = f"<agent><next_state>executing</next_state><thinking_log>{thought}</thinking_log>"

    # models leave out the end, and put fences around a reply
    return reply if done % 4 == 3 else f"```xml\n{reply}</agent>\n```"


def _acts(done: int) -> str:
    _thought, kind, tags, value = PLAN[done - 1]
    return f"<agent>{_action(kind, tags, value)}</agent>"


def _action(kind: str, tags: str, value: str = "") -> str:
    told = f"<value>{value}</value>" if value else ""
    return f"<action><type>{kind}</type><tags>{tags}</tags>{told}</action>"
