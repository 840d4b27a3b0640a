"""Reading what others wrote, and writing what must survive."""

from prism.files._durable import make_folder, save_folder, write_durably

__all__ = ["make_folder", "save_folder", "write_durably"]
