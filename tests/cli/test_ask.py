"""Asking an agent that is not running."""

from prism.cognition import Memory
from prism.testing import FakeOllama
from tests.kit.commands import Prism


def test_a_question_is_answered_from_the_memory(prism: Prism) -> None:
    """The model is shown what the memory has on it; the file stays as it is."""
    path = prism.folder / "memory.json"
    data = {"working_memory": {"place": "Lisbon"}, "storage": {"alba": "works on the train"}}
    Memory.create(path, data).close()
    before = path.read_bytes()
    prompts: list[str] = []

    def answer(prompt: str, *_about: object) -> str:
        prompts.append(prompt)
        return "On the train."

    with FakeOllama(write=answer) as server:
        done = prism("ask", "memory.json", "Where does Alba work?", "--model", "llama3.2",
                     "--host", server.url)  # fmt: skip
    assert (done.status, done.out.strip()) == (0, "On the train.")
    (prompt,) = prompts
    assert '<memory tag="alba">works on the train</memory>' in prompt
    assert "Lisbon" in prompt
    assert "Question: Where does Alba work?" in prompt
    assert path.read_bytes() == before


def test_a_question_needs_a_model_and_a_memory(prism: Prism) -> None:
    """What is missing is named on one line."""
    Memory.create(prism.folder / "memory.json", {}).close()
    assert "--model" in prism("ask", "memory.json", "Who?").err
    done = prism("ask", "none.json", "Who?", "--model", "llama3.2")
    assert (done.status, "this memory does not exist" in done.err) == (2, True)
