"""Files that exist whole or not at all."""

import errno
from pathlib import Path

import pytest

from prism.files import make_folder, save_folder, write_durably


def names(folder: Path) -> list[str]:
    """Return what is in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_put_in_place_whole(tmp_path: Path) -> None:
    """A file is written, then replaced by another of the name, and nothing else is left."""
    for content in (b"first, and longer", b"second", b""):
        write_durably(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
        assert names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_written_over(tmp_path: Path) -> None:
    """The unfinished file of a writer that was killed is no obstacle, and is gone afterwards."""
    (tmp_path / ".file.part").write_bytes(b"half of something longer than what comes")
    write_durably(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert names(tmp_path) == ["file"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """On a full disk a write raises, and leaves the earlier file and nothing else."""
    write_durably(tmp_path / "file", b"before")
    (tmp_path / ".file.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_durably(tmp_path / "file", b"after")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "file").read_bytes() == b"before"
    assert names(tmp_path) == ["file"]


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    """A folder that is deep, or there already, is there afterwards, with what it held."""
    make_folder(tmp_path / "a" / "b" / "c")
    (tmp_path / "a" / "b" / "kept").touch()
    make_folder(tmp_path / "a" / "b")
    assert names(tmp_path / "a" / "b") == ["c", "kept"]


@pytest.mark.parametrize("place", ["file", "file/a", "file/a/b"])
def test_a_file_in_the_way_is_an_error(place: str, tmp_path: Path) -> None:
    """Where a file has the name, or stands above, no folder is made and the file stays."""
    (tmp_path / "file").write_bytes(b"precious")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        make_folder(tmp_path / place)
    assert (tmp_path / "file").read_bytes() == b"precious"


def test_only_a_folder_that_is_there_can_be_saved(tmp_path: Path) -> None:
    """Saving a folder that is not there is an error, not a silent nothing."""
    save_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        save_folder(tmp_path / "nowhere")
