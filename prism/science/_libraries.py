"""Libraries of the extra ``science``, which are loaded when they are used."""

from functools import partial

from prism._lazy import import_extra

library = partial(import_extra, room="science")
