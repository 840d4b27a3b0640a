"""How numba compiles a world: function by function, but to machine code all at once.

By itself numba optimizes each function together with all that it calls, and makes machine code of
that, although whatever calls the function does so again. Here only the functions that Python calls
are optimized, which takes half of the time.
"""

from __future__ import annotations

from typing import Any

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class Part(JITCodeLibrary):
    """A function that only compiled code calls."""

    def finalize(self) -> None:
        """Leave optimizing to what Python calls."""
        self._finalized = True


class Whole(JITCodeLibrary):
    """A function that Python calls, with all the parts that it needs."""

    def finalize(self) -> None:
        """Link the parts, as functions that nothing else calls, and make machine code."""
        parts, others = self._needed()
        for part in parts:
            self._final_module.link_in(part._final_module, preserve=True)
        for each in [each.name for part in parts for each in part.get_defined_functions()]:
            self._final_module.get_function(each).linkage = "internal"

        self._linking_libraries = others
        super().finalize()

    def _needed(self) -> tuple[list[Any], list[Any]]:
        """Return the parts that are called, directly or not, and the libraries of numba's own."""
        found: dict[Any, None] = {self: None}
        waiting: list[Any] = [self]
        while waiting:
            new = [each for each in waiting.pop()._linking_libraries if each not in found]
            found |= dict.fromkeys(new)
            waiting += [each for each in new if isinstance(each, Part)]

        parts = [each for each in found if isinstance(each, Part)]
        return parts, [each for each in found if each not in (self, *parts)]


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lowers a function to LLVM's language, and makes no machine code of it."""

    _name = "lowering_of_a_part"

    def run_pass(self, state: Any) -> bool:
        """Let compiled code call the function."""
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, library = state["cr"], state.library
        module, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname
        # numba knows a function by what Python calls, which leads nowhere here
        entry = make_function(module, name, "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(entry, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class WholeCompiler(Compiler):
    """Compiles functions that Python calls."""

    library: type[JITCodeLibrary] = Whole

    def define_pipelines(self) -> Any:
        """Choose what the function becomes."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class PartCompiler(WholeCompiler):
    """Compiles functions that only compiled code calls."""

    library = Part

    def define_pipelines(self) -> Any:
        """Replace the step that makes machine code."""
        (passes,) = super().define_pipelines()
        passes.passes = [
            (PartLowering if each is NativeLowering else each, what) for each, what in passes.passes
        ]
        passes.finalize()
        return [passes]
