"""Configurations in the shapes that are in use."""

from typing import Any

ROLE = "A librarian of its own memory"
THINKING = "Think about what to do next."
EXECUTING = "Carry out one action."
ACTIONS = {
    "working_memory_add": "Remember something",
    "working_memory_remove": "Forget something",
    "storage_load": "Fetch something from storage",
    "storage_save": "Put something into storage",
}


def _example(**action: str) -> dict[str, Any]:
    return {"agent": {"action": action}}


LKJAGENT: dict[str, Any] = {
    "version": "1.0.0",
    "llm": {"endpoint": "http://localhost:1234/v1/chat/completions", "temperature": 0.7},
    "agent": {
        "thinking_log": {"enable": True, "max_entries": 4, "key_prefix": "thinking_log_"},
        "paging_limit": {"enable": True, "max_tokens": 1024},
        "hard_limit": {"enable": True, "max_tokens": 2048},
        "iterate": {"enable": True, "max_iterations": 10000},
        "state": {
            "base": {"prompt": {"role": ROLE, "instructions": "Reply in XML."}},
            "thinking": {
                "prompt": {
                    "state_description": {"thinking": THINKING, "executing": EXECUTING},
                    "output_example_case1": {"agent": {"next_state": "thinking"}},
                }
            },
            "executing": {
                "prompt": {
                    "available_actions": ACTIONS,
                    "output_example_case1": _example(type="storage_load", tags="plot"),
                    "output_example_case2": _example(type="storage_save", tags="plot", value="x"),
                }
            },
            "paging": {
                "prompt": {
                    "purpose": "Make room",
                    "strategy": "Keep what is needed",
                    "instructions": "Choose what to archive.",
                    "state_description": {"paging": "Choose what leaves working memory."},
                    "selection_criteria": {"keep_in_memory": ["todo"], "archive": ["old logs"]},
                    "output_example_case1": {"comment": "It archives", **_example(type="x")},
                }
            },
        },
    },
    "documentation": {"paging": {"description": "How it works", "steps": ["a", "b"]}},
}
"""As the files of lkjagent are that the specification goes with."""

OLDEST: dict[str, Any] = {
    "version": "1.0.0",
    "llm": {"model": "qwen3"},
    "agent": {
        "soft_limit": 2048,
        "hard_limit": 4096,
        "max_iterate": 65536,
        "default_status": "thinking",
        "prompt": {"system": "Write a story", "thinking": "", "executing": ""},
    },
}
"""As its first files are."""

FLAT: dict[str, Any] = {
    "state_description": {"thinking": THINKING, "executing": EXECUTING},
    "available_actions": ACTIONS,
    "thinking_log": {"enable": True, "max_entries": 10, "key_prefix": "thinking_log_"},
    "paging_limit": {"enable": True, "max_tokens": 4096},
    "hard_limit": {"enable": True, "max_tokens": 8192},
    "iterate": {"enable": True, "max_iterations": 1000},
}
"""The fragments of the specification, put into one object as they stand."""
