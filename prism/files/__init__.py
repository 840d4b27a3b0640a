"""Reading files that somebody else wrote, and writing files that must survive a crash."""

from prism.files._json import parse_json
from prism.files.durable import make_folder, replacing, save_folder, write_durably
from prism.files.records import Record, read_json_lines, reading

__all__ = [
    "Record",
    "make_folder",
    "parse_json",
    "read_json_lines",
    "reading",
    "replacing",
    "save_folder",
    "write_durably",
]
