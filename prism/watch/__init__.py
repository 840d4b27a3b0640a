"""Watching a run while it happens: one page in the browser, over its folder.

``watch("runs/first")`` shows it from a notebook; the command is ``prism watch RUN``.

Needs the extra ``watch``: ``pip install '.[watch]'`` in a checkout.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.watch.server import Watching, watch
else:
    __getattr__, __dir__ = lazy_names(__name__, extra="watch")

__all__ = ["Watching", "watch"]
