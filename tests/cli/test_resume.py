"""``prism resume`` as a user runs it."""

import json
import shutil
import signal
from pathlib import Path
from re import finditer

import pytest

from prism import Run
from prism.social import Feed
from tests.kit.commands import LIMITED, Prism, signalled
from tests.kit.kept import tree
from tests.kit.waiting import has_ended, has_stopped, wait_until

AGENTS, ROUNDS, SEED = 30, 30, 5
RUN = ("simulate", "--agents", AGENTS, "--rounds", ROUNDS, "--seed", SEED)
KEEPING = ("--out", "run")
RESUME = ("resume", "run")
AGAIN = "prism: run: repeating it with 0 answers, then going on\n"
HINT = "prism: continue with: prism resume run\n"

Tree = dict[str, bytes | None]
Ended = tuple[int, str, str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """Return what a run that nothing disturbed leaves behind."""
    path = tmp_path_factory.mktemp("whole") / "run"
    Run(Feed, AGENTS, rounds=ROUNDS, seed=SEED).keep(path)
    return tree(path)


@pytest.fixture(scope="module")
def full(whole: Tree, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """Run until the disk is full in the fourth round; return folder, status, output and errors."""
    folder = tmp_path_factory.mktemp("full")
    begun = [found.end() for found in finditer(b'"round.started"', whole["events.jsonl"] or b"")]
    ran = Prism(folder).run(*RUN, *KEEPING, first=LIMITED.format(begun[3]))
    return folder / "run", (ran.status, ran.out, ran.err)


@pytest.fixture
def run(prism: Prism) -> Path:
    """Return the folder of the command's run."""
    return Path(prism.folder / "run")


@pytest.fixture
def stopped(full: tuple[Path, Ended], run: Path) -> Path:
    """Return the folder of a run that was stopped in its fourth round."""
    shutil.copytree(full[0], run)
    return run


# Full disk


@pytest.mark.slow
def test_a_full_disk_ends_a_run_in_one_line(
    full: tuple[Path, Ended], prism: Prism, stopped: Path, whole: Tree
) -> None:
    """A log that cannot grow ends the run with status 1 and the command that goes on from there."""
    assert full[1] == (1, "", f"{HINT}prism: output: File too large\n")
    assert "results" not in json.loads((stopped / "run.json").read_bytes())
    ran = prism(*RESUME)
    assert (ran.status, ran.err) == (0, AGAIN)
    assert "Agents in each state" in ran.out
    assert tree(stopped) == whole


@pytest.mark.slow
def test_a_disk_full_from_the_start_leaves_no_run(prism: Prism, run: Path, whole: Tree) -> None:
    """Where not even run.json can be written no run has begun, and the same command begins it."""
    run.mkdir()
    (run / ".run.json.part").symlink_to("/dev/full")
    ran = prism(*RUN, *KEEPING)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "prism: run/run.json: No space left on device\n"
    assert prism(*RUN, *KEEPING).status == 0
    assert tree(run) == whole


# Signals


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (signal.SIGINT, 130, f"{HINT}prism: interrupted\n"),
        (signal.SIGTERM, -signal.SIGTERM, ""),
        (signal.SIGKILL, -signal.SIGKILL, ""),
    ],
)
@pytest.mark.sampled(3)
def test_a_signal_leaves_a_run_that_goes_on(
    sent: signal.Signals, status: int, said: str, prism: Prism, run: Path, whole: Tree
) -> None:
    """Interrupted or terminated, a run is carried out again, to the same bytes."""
    first = signalled(sent, 3)
    ended = prism.run(*RUN, *KEEPING, first=first)
    assert (ended.status, ended.out, ended.err) == (status, "", said)
    ran = prism(*RESUME, "--json")
    assert ran.status == 0
    assert ran.err == AGAIN
    assert ran.out.encode() == whole["run.json"]
    assert tree(run) == whole


# At the same time


@pytest.mark.slow
def test_a_run_going_on_is_left_alone(prism: Prism, run: Path) -> None:
    """While a run goes on, resuming it is refused in one line, and the run is not disturbed."""
    log = run / "events.jsonl"
    endless = ("simulate", "--agents", AGENTS, "--rounds", 100_000, "--seed", SEED)
    with prism.start(*endless, *KEEPING) as process:
        wait_until(lambda: b"round.ended" in (log.read_bytes() if log.exists() else b""))
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: has_stopped(process))
        before = tree(run)
        ran = prism(*RESUME)
        after = tree(run)
        size = log.stat().st_size
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: log.stat().st_size > size or has_ended(process))
        assert not has_ended(process)
        process.kill()
    assert (ran.status, ran.out) == (2, "")
    assert "prism: run/events.jsonl: is being written by another process: " in ran.err
    assert after == before


# What is refused, and what needs nothing


@pytest.mark.slow
def test_changed_inputs_are_reported_and_what_differs_is_named(prism: Prism, run: Path) -> None:
    """A run whose posts have changed goes on while it does the same, and else names the line."""
    persons = (f'{{"agent_id": "a{number}", "interests": ["art"]}}\n' for number in range(20))
    (prism.folder / "people.jsonl").write_text("".join(persons))
    posts = b'{"author_id": "a1", "text": "Look.", "topics": ["art"]}\n'
    (prism.folder / "posts.jsonl").write_bytes(posts)
    given = ("--agents", "people.jsonl", "--set", "first_posts=posts.jsonl", "--rounds", 3)
    assert prism("simulate", *given, "--out", "recorded").status == 0
    recorded = (prism.folder / "recorded" / "events.jsonl").read_bytes()
    limited = LIMITED.format(len(recorded) * 3 // 4)
    assert prism.run("replay", "recorded", *KEEPING, first=limited).status == 1
    (prism.folder / "posts.jsonl").write_bytes(posts.replace(b"Look", b"Away"))
    ran = prism(*RESUME)
    assert (ran.status, ran.out) == (2, "")
    assert "prism: posts.jsonl: has changed since the run began" in ran.err
    assert '"text":"Look."' in ran.err
    (prism.folder / "posts.jsonl").write_bytes(posts + b"\n")
    ran = prism(*RESUME)
    assert ran.status == 0, ran.err
    assert (run / "events.jsonl").read_bytes() == recorded
