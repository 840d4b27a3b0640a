"""Files that exist whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from prism.files import make_folder, replacing, write_durably
from prism.files.durable import cache_folder


def names(folder: Path) -> list[str]:
    """Return what is in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    """A file is written, then replaced; what a killed writer left is gone with the first write."""
    (tmp_path / ".file.part").write_bytes(b"half of something longer than what comes")
    for content in (b"first, and longer", b"second", b""):
        write_durably(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
        assert names(tmp_path) == ["file"]


def test_a_file_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is synchronized under another name, and its new name after that."""
    (tmp_path / "file").write_bytes(b"before")
    synchronized = []

    def noted(number: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(number).st_mode)
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        synchronized.append((is_folder, files))

    monkeypatch.setattr("os.fsync", noted)
    write_durably(tmp_path / "file", b"after")
    assert synchronized == [
        (False, {".file.part": b"after", "file": b"before"}),
        (True, {"file": b"after"}),
    ]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """On a full disk a write raises, and leaves the earlier file and nothing else."""
    write_durably(tmp_path / "file", b"before")
    (tmp_path / ".file.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_durably(tmp_path / "file", b"after")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "file").read_bytes() == b"before"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("place", ["file", "file/a", "file/a/b"])
def test_a_file_in_the_way_is_an_error(place: str, tmp_path: Path) -> None:
    """No folder replaces a file of its name, or is made below a file."""
    (tmp_path / "file").write_bytes(b"precious")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_folder(tmp_path / place)
    assert (tmp_path / "file").read_bytes() == b"precious"


def write_half(path: Path, wrong: type[BaseException]) -> None:
    """Begin to replace a file, and raise an error in the middle."""
    with replacing(path) as file:
        file.write(b"half")
        raise wrong


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    """What goes wrong while a file is written leaves the old one, and nothing else."""
    (tmp_path / "file").write_bytes(b"before")
    for wrong in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(wrong):
            write_half(tmp_path / "file", wrong)

    assert (tmp_path / "file").read_bytes() == b"before"
    assert names(tmp_path) == ["file"]


def test_a_replaced_file_keeps_its_permissions_and_links(tmp_path: Path) -> None:
    """Permissions stay, a link still leads to the file, and a hard link keeps the old content."""
    path, link, hard = tmp_path / "file", tmp_path / "link", tmp_path / "hard"
    path.write_bytes(b"before")
    path.chmod(0o640)
    link.symlink_to("file")
    hard.hardlink_to(path)
    with replacing(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert (path.read_bytes(), hard.read_bytes()) == (b"after", b"before")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    """A pipe is no file to replace: what is written goes through it."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as file:
        file.write(b"through")
    assert os.read(reading, 100) == b"through"
    os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_that_is_open_is_written_to_as_it_is(tmp_path: Path) -> None:
    """As standard output may be one: what is in it stays."""
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"before ")
        with replacing(Path(f"/proc/self/fd/{file.fileno()}")) as stream:
            stream.write(b"after")
    assert (tmp_path / "file").read_bytes() == b"before after"


def test_names_of_every_length_can_be_replaced(tmp_path: Path) -> None:
    """A file whose name is as long as names may be is written, too."""
    path = tmp_path / ("é" * 127)
    with replacing(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    """A folder is refused before anything is written."""
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pytest.fail("opened")


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as any number; whoever looks into the cache goes on without."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(FileNotFoundError, match="home"):
        cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/prism")
