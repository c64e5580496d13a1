"""Dot products whose sums are taken in one order, on any processor.

A compiler that keeps the order of sums uses no vectors for a plain loop, and one that may change it
makes results depend on how wide a processor's vectors are. Here the order is written down: eight
partial sums, number k of the products k, k + 8, ...; then four of them, then one. Products are
rounded before they are added (no fused instructions). Four rows are read side by side: their sums
do not wait for each other, nor for the memory of one of them.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from discreet._types import FloatArray

ROWS = 4
"""How many rows `dots` reads."""

_WIDE, _NARROW = 8, 4
_DOUBLE, _PLACE = ir.DoubleType(), ir.IntType(32)


def _dots(context: Any, rows: Any, numbers: Any, values: Any) -> tuple[Any, Callable[..., Any]]:
    """Type and code of the dot products of four rows with ``values``, which has their length."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        factors = context.make_array(signature.args[2])(context, builder, arguments[2])
        length = builder.extract_value(factors.shape, 0)
        places = [builder.mul(builder.extract_value(arguments[1], k), length) for k in range(ROWS)]
        arrays = [builder.gep(given.data, [place]) for place in places], factors.data, length
        sums: list[Any] = [ir.Constant(_kind(_WIDE), [0.0] * _WIDE)] * ROWS
        sums, i = _add_products(builder, arrays, sums, length.type(0))
        halves = [[_part(builder, one, first) for first in (0, _NARROW)] for one in sums]
        sums, i = _add_products(builder, arrays, [builder.fadd(*two) for two in halves], i)
        sums, i = _add_products(builder, arrays, [_sum(builder, one) for one in sums], i)
        return context.make_tuple(builder, signature.return_type, sums)

    return types.UniTuple(types.float64, ROWS)(rows, numbers, values), generate


def _kind(width: int) -> Any:
    return ir.VectorType(_DOUBLE, width) if width > 1 else _DOUBLE


def _part(builder: Any, sums: Any, first: int) -> Any:
    """Partial sums ``first`` to ``first + _NARROW``."""
    places = ir.Constant(ir.VectorType(_PLACE, _NARROW), list(range(first, first + _NARROW)))
    return builder.shuffle_vector(sums, ir.Constant(sums.type, ir.Undefined), places)


def _sum(builder: Any, sums: Any) -> Any:
    a, b, c, d = (builder.extract_element(sums, _PLACE(k)) for k in range(_NARROW))
    return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))


def _add_products(
    builder: Any, arrays: tuple[list[Any], Any, Any], sums: list[Any], start: Any
) -> tuple[list[Any], Any]:
    """A loop that adds as many products at a time as a row has sums, while so many are left."""
    rows, values, length = arrays
    kind, before = sums[0].type, builder.block
    width = kind.count if isinstance(kind, ir.VectorType) else 1
    head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    i, totals = builder.phi(start.type), [builder.phi(kind) for _ in sums]
    stop = builder.add(i, start.type(width))
    builder.cbranch(builder.icmp_signed("<=", stop, length), body, after)
    builder.position_at_end(body)
    factor = _load(builder, values, i, width)
    products = [builder.fmul(_load(builder, row, i, width), factor) for row in rows]
    i.add_incoming(start, before)
    i.add_incoming(stop, body)
    for total, first, product in zip(totals, sums, products, strict=True):
        total.add_incoming(first, before)
        total.add_incoming(builder.fadd(total, product), body)
    builder.branch(head)
    builder.position_at_end(after)
    return totals, i


def _load(builder: Any, array: Any, i: Any, width: int) -> Any:
    """So many neighbours from place i on, which need not stand at a multiple of a vector."""
    place = builder.bitcast(builder.gep(array, [i]), _kind(width).as_pointer())
    loaded = builder.load(place)
    loaded.align = 8
    return loaded


dots: Callable[[FloatArray, tuple[int, int, int, int], FloatArray], tuple[float, ...]] = intrinsic(
    _dots
)
"""``rows[k] @ values`` for four numbers k (contiguous doubles; in compiled code only)."""
