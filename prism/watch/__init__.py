"""Watching a run while it happens: one page in the browser, over its folder.

``watch("runs/first")`` shows it from a notebook; the command is ``prism watch RUN``.

Needs the extra ``watch``: ``pip install '.[watch]'`` in a checkout.
"""

from prism.errors import MissingExtraError

try:
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401

    import prism.report as _report  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name not in ("starlette", "uvicorn"):
        raise
    raise MissingExtraError("watch", _error.name) from None

from prism.watch._server import Watching, watch

__all__ = ["Watching", "watch"]
