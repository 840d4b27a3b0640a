"""``prism memory`` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prism.cognition import Memory
from tests.kit import processes
from tests.kit.commands import Prism

ROOT = Path(__file__).parents[2]
DOCUMENT = {
    "working_memory": {"alice": "adventurous", "friends": ["bob", "carol"]},
    "note": "by hand",
    "storage": {"plot_1": "Alice finds a letter", "plot_2": "Bob follows the map"},
    "state": "executing",
    "thinking_log_001": "Where does the letter lead?",
    "prism": {"schema": 2, "cycle": 4, "next_thought": 2, "used": {"alice": 3}},
}
KINDS: list[Any] = ["json", "sqlite"]


@pytest.fixture(params=["json", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a memory of each kind."""
    path = tmp_path / "memory"
    Memory.create(path, DOCUMENT, storage=request.param).close()
    return path


def held(path: Path) -> dict[str, Any]:
    """Return what a memory holds."""
    memory = Memory.read(path)
    found = memory.to_dict()
    memory.close()
    return found


def editing(prism: Prism, script: str) -> Prism:
    """Return the command line with an editor that runs a script on the text ``text``."""
    editor = prism.folder / "editor.py"
    editor.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\n"
        f"text = file.read_text(errors='surrogateescape')\n{script}\n"
        "file.write_text(text, errors='surrogateescape')\n"
    )
    return Prism(prism.folder, environment={"EDITOR": f"{sys.executable} {editor}"})


def test_show(prism: Prism, memory: Path) -> None:
    """State, sizes and tokens of each memory, the thoughts, and storage are shown."""
    ended = prism("memory", "show", memory)
    assert (ended.status, ended.err) == (0, "")
    for text in (
        *("executing", "alice", "adventurous", "friends", '["bob","carol"]', "note"),
        *("thinking_log_001", "Where does the letter lead?", "plot_2", "Bob follows the map"),
    ):
        assert text in ended.out


def test_show_as_json(prism: Prism, memory: Path) -> None:
    """The same as data."""
    listing: Any = prism("memory", "show", memory, "--json", "--stored", 1).rows
    assert (listing["state"], listing["cycle"], listing["stored"]) == ("executing", 4, 2)
    assert [(each["tag"], each["used"]) for each in listing["working_memory"]] == [
        ("alice", 3),
        ("friends", None),
    ]
    assert [each["tag"] for each in listing["storage"]] == ["plot_1"]
    assert all(each["tokens"] > 0 for each in listing["working_memory"])
    assert listing["thoughts"][0]["value"] == "Where does the letter lead?"
    assert listing["unknown"] == ["note"]


def test_show_says_what_it_leaves_out(prism: Prism, memory: Path) -> None:
    """A long storage is not poured out; its length is told."""
    assert "and 1 more in storage" in prism("memory", "show", memory, "--stored", 1).out


def test_search(prism: Prism, memory: Path) -> None:
    """Working memory, thoughts and storage are searched."""
    ended = prism("memory", "search", memory, "the", "letter", "--json")
    assert ended.status == 0
    assert [(each["where"], each["tag"]) for each in ended.rows] == [
        ("thoughts", "thinking_log_001"),
        ("storage", "plot_1"),
        ("storage", "plot_2"),
    ]
    assert "adventurous" in prism("memory", "search", memory, "alice").out
    assert (
        len(prism("memory", "search", memory, "alice", "letter", "--json", "--most", 1).rows) == 3
    )


def test_search_without_matches(prism: Prism, memory: Path) -> None:
    """Nothing found is exit status 1."""
    ended = prism("memory", "search", memory, "nothing")
    assert (ended.status, ended.out) == (1, "")
    assert "nothing in the memory" in ended.err
    assert prism("memory", "search", memory, "nothing", "--json").rows == []


def test_export(prism: Prism, memory: Path) -> None:
    """A memory is written as JSON to standard output, or to a file."""
    assert json.loads(prism("memory", "export", memory).out) == DOCUMENT
    assert prism("memory", "export", memory, "--out", "out.json").status == 0
    assert json.loads((prism.folder / "out.json").read_text()) == DOCUMENT


@pytest.mark.sampled(2)
def test_export_as_another_memory(prism: Prism, memory: Path) -> None:
    """A memory is made a database, in a new file only."""
    line = ("memory", "export", memory, "--storage", "sqlite", "--out", "out.db")
    assert prism(*line).status == 0
    assert held(prism.folder / "out.db") == DOCUMENT
    assert prism(*line).status == 2
    assert prism(*line[:-2]).status == 2


@pytest.mark.parametrize("name", ["memory", "memory.1.bak", "link"])
@pytest.mark.sampled(6)
def test_export_over_what_is_read(prism: Prism, memory: Path, name: str) -> None:
    """No export replaces the memory that it reads, or one of its backups."""
    with Memory.open(memory) as opened:
        opened.end_cycle()
        opened.commit()
    (prism.folder / "link").symlink_to(memory)
    content = (prism.folder / name).read_bytes()
    ended = prism("memory", "export", memory, "--out", name)
    assert ended.status == 2
    assert "name another file" in ended.err
    assert (prism.folder / name).read_bytes() == content


def test_edit(prism: Prism, memory: Path) -> None:
    """What was written in the editor is what the memory is."""
    edited = editing(prism, 'text = text.replace("a letter", "a map").replace("note", "remark")')
    ended = edited("memory", "edit", memory)
    assert (ended.status, ended.err) == (0, "")
    assert held(memory) == json.loads(
        json.dumps(DOCUMENT).replace("a letter", "a map").replace("note", "remark")
    )
    assert list(held(memory)) == ["remark" if key == "note" else key for key in DOCUMENT]


@pytest.mark.sampled(2)
def test_edit_removes(prism: Prism, memory: Path) -> None:
    """What was removed in the editor is gone, from the search as well."""
    edited = editing(
        prism,
        "import json\ndata = json.loads(text)\ndel data['storage']['plot_2']\n"
        "text = json.dumps(data)",
    )
    assert edited("memory", "edit", memory).status == 0
    assert list(held(memory)["storage"]) == ["plot_1"]
    assert prism("memory", "search", memory, "map").status == 1


@pytest.mark.sampled(2)
def test_edit_changes_nothing(prism: Prism, memory: Path) -> None:
    """Who leaves the text as it is has exit status 1 and an untouched file."""
    before = held(memory)
    ended = editing(prism, "")("memory", "edit", memory)
    assert (ended.status, ended.err) == (1, "prism: nothing was changed\n")
    assert held(memory) == before


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("text = text.replace('\"note\":', '\"note\"')", "line 9, is not valid JSON"),
        ('text = text.replace(\'"executing"\', "1")', "key 'state', must be text"),
        ("text = text.replace('storage', 'storrage')", "did you mean 'storage'?"),
        ("text = text.replace('executing', 'executin')", "did you mean 'executing'?"),
        ("text = ''", "is empty"),
        ("text = '[]'", "line 1, must be a mapping of keys, got []"),
        ('text = text.replace("alice", "\\udcff", 1)', "line 3, is not UTF-8"),
    ],
)
@pytest.mark.sampled(14)
def test_edit_gives_up(prism: Prism, memory: Path, script: str, place: str) -> None:
    """A broken text is refused with its line or key; who gives up keeps memory and text."""
    before = held(memory)
    edited = editing(prism, script)
    ended = edited.run("memory", "edit", memory, stdin=subprocess.DEVNULL)
    assert ended.status == 1
    assert place in ended.err
    assert "nothing was changed; your text is kept in" in ended.err
    kept = Path(ended.err.split("is kept in ")[1].strip())
    assert kept.exists()
    kept.unlink()
    assert held(memory) == before


@pytest.mark.slow
def test_edit_goes_on(prism: Prism, memory: Path) -> None:
    """Who goes on finds the broken text again, and mends it."""
    edited = editing(
        prism,
        "broken = '}}' in text\n"
        "text = text.replace('}}', '}').replace('map', 'road') if broken "
        "else text.replace('}', '}}', 1)",
    )
    with edited.start("memory", "edit", memory, stdin=subprocess.PIPE) as process:
        _, err = process.communicate("y\n")
    assert process.returncode == 0
    assert "is not valid JSON" in err
    assert held(memory)["storage"]["plot_2"] == "Bob follows the road"


def test_edit_mends(prism: Prism) -> None:
    """A damaged memory without backups is opened as it is, and mended."""
    path = prism.folder / "memory.json"
    path.write_text('{"working_memory": {"a": "b"')
    ended = editing(prism, "text += '}}'")("memory", "edit", path)
    assert ended.status == 0
    assert "the damaged file will be kept" in ended.err
    assert held(path)["working_memory"] == {"a": "b"}
    assert (prism.folder / "memory.json.damaged").read_text() == '{"working_memory": {"a": "b"'


@pytest.mark.parametrize("editor", ["no-such-editor", "false", "'"])
@pytest.mark.sampled(6)
def test_edit_without_editor(prism: Prism, memory: Path, editor: str) -> None:
    """An editor that cannot be started, or fails, changes nothing."""
    before = held(memory)
    ended = Prism(prism.folder, environment={"EDITOR": editor})("memory", "edit", memory)
    assert ended.status == 2
    assert "editor" in ended.err
    assert held(memory) == before


@pytest.mark.parametrize("editor", [None, "vi", "/usr/bin/nano -w"])
@pytest.mark.sampled(6)
def test_edit_without_a_terminal(prism: Prism, memory: Path, editor: str | None) -> None:
    """An editor that would wait for a terminal is refused in one line where there is none."""
    before = held(memory)
    environment = {} if editor is None else {"EDITOR": editor}
    ended = Prism(prism.folder, environment=environment)("memory", "edit", memory)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "needs a terminal" in ended.err
    assert held(memory) == before


def test_forget(prism: Prism, memory: Path) -> None:
    """A memory is removed by its tag, wherever it is; with an unknown one beside it, nothing is."""
    with Memory.read(memory) as opened:
        before, tag = opened.to_dict(), next(iter(opened.working))
    refused = prism("memory", "forget", memory, tag, "nobody")
    with Memory.read(memory) as opened:
        assert (refused.status, opened.to_dict()) == (1, before)
    assert "there is no memory 'nobody': nothing was removed" in refused.err
    assert prism("memory", "forget", memory, tag).status == 0
    assert prism("memory", "show", memory, tag).status == 1


@pytest.mark.sampled(2)
def test_compact(prism: Prism, memory: Path) -> None:
    """Nothing that it holds is dropped; backups beyond those wanted and unfinished files are."""
    with Memory.open(memory) as opened:
        for number in range(300):
            opened.save(f"big {number}", "x" * 1000)
        opened.commit()
    with Memory.open(memory) as opened:
        opened.replace(DOCUMENT)
        opened.commit()
    (prism.folder / ".memory.part").write_text("half")
    before = memory.stat().st_size
    ended = prism("memory", "compact", memory, "--backups", 1)
    assert ended.status == 0
    assert f"{before:,} bytes before, {memory.stat().st_size:,} bytes now" in ended.out
    assert memory.stat().st_size < 100_000
    assert held(memory) == DOCUMENT
    assert sorted(path.name for path in prism.folder.iterdir()) == ["memory", "memory.1.bak"]


@pytest.mark.parametrize("command", ["show", "search", "export", "edit", "compact"])
def test_there_is_no_memory(prism: Prism, command: str) -> None:
    """A memory that does not exist is refused by each command, and none is made."""
    words = ["alice"] if command == "search" else []
    ended = prism("memory", command, "nothing.json", *words)
    assert ended.status == 2
    assert "nothing.json: this memory does not exist" in ended.err
    assert list(prism.folder.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(2)
def test_while_an_agent_lives(prism: Prism, kind: Any) -> None:
    """Who only looks may look; who would change the memory is refused with the process's number."""
    path = prism.folder / "memory"
    line = [sys.executable, "-m", "tests.cognition.memory.living", str(path), kind]
    with processes.start(line, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            for command in ("show", "export"):
                assert prism("memory", command, path).status == 0
            assert prism("memory", "search", path, "alice").status in (0, 1)
            for command in ("edit", "compact"):
                ended = prism("memory", command, path)
                assert ended.status == 2
                assert f"is in use by process {process.pid}" in ended.err
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.mark.sampled(2)
def test_a_damaged_memory(prism: Prism, memory: Path) -> None:
    """A damaged memory is shown from its backup, with a line that names both files."""
    with Memory.open(memory) as opened:
        opened.end_cycle()
        opened.commit()
    memory.write_bytes(b"{")
    ended = prism("memory", "show", memory)
    assert ended.status == 0
    assert ended.err.startswith("prism: ")
    assert "memory, line 1: is not valid JSON" in ended.err
    assert "memory.1.bak" in ended.err
    assert len(ended.err.splitlines()) == 1
    for backup in prism.folder.glob("*.bak"):
        backup.unlink()
    assert prism("memory", "show", memory).status == 2


def test_hostile_memories(prism: Prism) -> None:
    """What a memory says reaches no terminal as it is."""
    evil = "\x1b]0;x\x07\x1b[31m\u202e"
    path = prism.folder / os.fsdecode(b"m\xe9.json")
    Memory.create(
        path,
        {
            "working_memory": {"a": evil},
            "storage": {"b": evil},
            "state": evil,
            evil: 1,
            "thinking_log_001": evil,
        },
    ).close()
    for line in (("show", path), ("search", path, "x", "a", "b", "31m")):
        ended = prism("memory", *line)
        assert ended.status == 0
        assert "x" in ended.out
        assert not any(letter in ended.out for letter in "\x1b\x07\u202e")


def test_one_memory_is_shown_whole(prism: Prism) -> None:
    """With a tag the whole value is shown, and its versions if they are asked for."""
    with Memory.create(prism.folder / "memory.json", {}) as memory:
        memory.save("alice", "young " * 60)
        memory.end_cycle()
        memory.end_cycle()
        memory.save("alice", "old " * 60)
        memory.commit()
    shown = prism("memory", "show", "memory.json", "alice", "--json").rows
    assert [(row["where"], row["value"]) for row in shown] == [("storage", "old " * 60)]
    both = prism("memory", "show", "memory.json", "alice", "--versions", "--json").rows
    assert [row["where"] for row in both] == ["storage", "version 1"]
    assert [row.get("replaced_in_cycle") for row in both] == [None, 2]
    for words in (["alice", "--versions"], ["--versions"]):
        assert "until cycle" in prism("memory", "show", "memory.json", *words).out
    listed = json.loads(prism("memory", "show", "memory.json", "--versions", "--json").stdout)
    assert listed["replaced_in_cycle"] == {"alice": [2]}
    assert prism("memory", "show", "memory.json", "bob").status == 1
    assert prism("memory", "compact", "memory.json", "--versions", "0").status == 0
    left = prism("memory", "show", "memory.json", "alice", "--versions", "--json").rows
    assert [row["where"] for row in left] == ["storage"]
