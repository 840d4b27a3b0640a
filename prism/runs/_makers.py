"""Making whoever decides or writes in a run from its options."""

from __future__ import annotations
