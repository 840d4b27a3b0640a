"""A run that is killed at any instant of its life, again and again, comes to the same bytes.

``PRISM_KILLS`` sets how many instants each scenario is killed at, spread over the whole life of an
undisturbed run from the start of the process to its end: 12 by default, 100 for the full proof.
"""

import logging
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

import prism
from prism.testing import Asked, FakeOllama

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("PRISM_KILLS", "12"))
MOST_KILLED_RESUMES = 6
OUT = ("--out", "run", "--checkpoint-every", 0)
RESUME = ("simulate", "--resume", "run", "--checkpoint-every", 0)
MODEL_RUN = ("simulate", "--agents", 200, "--rounds", 20, "--seed", 3)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scenario:
    """A command, and what it leaves when nothing disturbs it.

    Args:
        home: Folder in which its inputs are.
        line: The command.
        left: Every file that it leaves, hidden ones included, with its digest.
        seconds: How long it lives.
    """

    home: Path
    line: tuple[str | int, ...]
    left: dict[str, str]
    seconds: float


def start(folder: Path, *arguments: str | int) -> subprocess.Popen[bytes]:
    """Start the command in a folder."""
    line = [sys.executable, "-c", "from prism.cli import main; main()", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(prism.__file__).parents[1])}
    return subprocess.Popen(
        line, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def complete(folder: Path, *arguments: str | int) -> float:
    """Run the command to its end, which must be a good one; give the seconds that it took."""
    began = time.monotonic()
    with start(folder, *arguments) as process:
        _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    return time.monotonic() - began


def kill(folder: Path, after: float, *arguments: str | int) -> bool:
    """Start the command and kill it after so many seconds; tell whether it was still alive."""
    with start(folder, *arguments) as process:
        time.sleep(after)
        process.kill()
        process.communicate()
    return process.returncode != 0


def files(folder: Path) -> dict[str, str]:
    """Return every file below a folder with its digest."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in found}


def where(run: Path) -> str:
    """Tell how far a killed run had come."""
    summary = run / "run.json"
    if not summary.exists():
        return "not begun"
    done = "results written" if b'"results"' in summary.read_bytes() else "under way"
    rounds = [int(path.name[-8:]) for path in run.glob("checkpoints/round_*")]
    unfinished = [path.name for path in run.rglob(".*.part")]
    return (
        f"{done}, round {max(rounds, default=0)}, unfinished: {', '.join(unfinished) or 'nothing'}"
    )


@pytest.fixture(scope="module", params=["policy", "replay"])
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return a run that the policy decides, and one that replays what a model decided."""
    home = tmp_path_factory.mktemp(request.param)
    if request.param == "policy":
        line = ("simulate", "--agents", 300, "--rounds", 20, "--seed", 4)
    else:
        with FakeOllama(choose=varied) as server:
            model = (
                "--reasoner",
                "ollama",
                "--model",
                "llama3.2",
                "--host",
                server.host,
                "--concurrency",
                16,
            )
            complete(home, *MODEL_RUN, *model, "--out", "recorded")
        line = (*MODEL_RUN, "--replay", str(home / "recorded"))
    seconds = max(complete(home, *line, "--out", f"run{number}", *OUT[2:]) for number in range(2))
    return Scenario(home, line, files(home / "run0"), seconds)


def varied(asked: Asked) -> str:
    """Choose differently from prompt to prompt, and the same in every run."""
    return asked.options[sum(map(ord, asked.prompt)) % len(asked.options)]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_killed_run_comes_to_the_same_bytes(
    number: int, scenario: Scenario, tmp_path: Path
) -> None:
    """Killed at any instant, also while it is resumed, a run leaves what it would have left."""
    draw = random.Random(f"{scenario.line} {number}")
    run = tmp_path / "run"
    instant = scenario.seconds * (number + draw.random()) / KILLS
    alive = kill(tmp_path, instant, *scenario.line, *OUT)
    logger.info(
        "%s: killed after %.3f s: %s",
        scenario.home.name,
        instant,
        where(run) if alive else "after the end",
    )
    for _ in range(MOST_KILLED_RESUMES):
        if draw.random() < 0.5:
            break
        again = draw.random() * scenario.seconds
        alive = kill(
            tmp_path, again, *(RESUME if (run / "run.json").exists() else (*scenario.line, *OUT))
        )
        place = where(run) if alive else "after the end"
        logger.info("%s: killed again after %.3f s: %s", scenario.home.name, again, place)
    complete(tmp_path, *(RESUME if (run / "run.json").exists() else (*scenario.line, *OUT)))
    assert files(run) == scenario.left
    assert not (run / "checkpoints").exists()
