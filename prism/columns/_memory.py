"""Reading and writing columns by their addresses, in compiled code.

All that compiled code knows of a run is one record, which holds the addresses of the columns. So
each function takes it alone, is compiled once, and passes nothing on that costs anything.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


def run_at(run: Any) -> Any:
    """Return a function that finds the record of a run at an address."""
    record = from_dtype(run)

    def find(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], context.get_value_type(record))

    def typed(typing: Any, address: Any) -> Any:  # noqa: ARG001 - numba's names
        return record(types.int64), find

    return intrinsic(typed)


def records(run: Any, column: str, kind: Any) -> Any:
    """Return a function that finds a record of a column by its number."""
    run_record, record = from_dtype(run), from_dtype(kind)
    offset = run.fields[column][1]

    def find(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        place = builder.add(builder.ptrtoint(given[0], _WORD), _WORD(offset))
        first = builder.load(builder.inttoptr(place, _WORD.as_pointer()))
        found = builder.add(first, builder.mul(given[1], _WORD(kind.itemsize)))
        return builder.inttoptr(found, context.get_value_type(record))

    def typed(typing: Any, run: Any, number: Any) -> Any:  # noqa: ARG001
        return record(run_record, types.int64), find

    return intrinsic(typed)


def _access(of: str) -> tuple[Any, Any]:
    """Return functions that read and write one of the numbers at an address."""
    is_float, bits = of == "f8", ir.IntType(8 * int(of[1]))
    stored = ir.DoubleType() if is_float else bits
    number = {"f8": types.float64, "u8": types.uint64}.get(of, types.int64)

    def place(builder: Any, address: Any, index: Any) -> Any:
        return builder.gep(builder.inttoptr(address, stored.as_pointer()), [index])

    def get(typing: Any, address: Any, index: Any) -> Any:  # noqa: ARG001
        def read(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            found = builder.load(place(builder, *given))
            widen = builder.zext if of == "u1" else builder.sext
            return found if is_float else widen(found, _WORD)

        return number(types.int64, types.int64), read

    def put(typing: Any, address: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
        def write(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
            value = given[2] if is_float else builder.trunc(given[2], bits)
            builder.store(value, place(builder, *given[:2]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, number), write

    return intrinsic(get), intrinsic(put)


(get_u1, put_u1), (get_i4, put_i4), (get_i8, put_i8) = map(_access, ("u1", "i4", "i8"))
(get_u8, put_u8), (get_f8, put_f8) = map(_access, ("u8", "f8"))


def _fetch(typing: Any, address: Any) -> Any:  # noqa: ARG001
    """Prefetch a cache line that is needed soon, without waiting for it."""

    def ask(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        asked = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(asked, [builder.inttoptr(given[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), ask


fetch: Any = intrinsic(_fetch)


def _glance(typing: Any, address: Any) -> Any:  # noqa: ARG001
    """Read a number that another thread may set, anew each time."""

    def read(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        place = builder.inttoptr(given[0], _WORD.as_pointer())
        return builder.load_atomic(place, "monotonic", 8)

    return types.int64(types.int64), read


glance: Any = intrinsic(_glance)


def _opaque(typing: Any, number: Any) -> Any:  # noqa: ARG001
    """Return a number of which the optimizer knows nothing.

    It would make ``x * x`` of ``pow(x, 2.0)``, which is another number in one of a thousand cases.
    """

    def carry(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        # no instruction at all, behind which the optimizer does not look
        nothing = ir.InlineAsm(ir.FunctionType(_WORD, [_WORD]), "", "=r,0", side_effect=True)
        bits = builder.call(nothing, [builder.bitcast(given[0], _WORD)])
        return builder.bitcast(bits, ir.DoubleType())

    return types.float64(types.float64), carry


opaque: Any = intrinsic(_opaque)
