"""The hash of one row, step by step: what hash_words has to give for many."""

from __future__ import annotations

from tablestore_engine.format.murmur import _FINAL, _MASK, SEED, _mix_number


def hash_row_bytes(row: bytes) -> int:
    """The signed 32-bit hash of a row's bytes, without arity prefix."""
    state = SEED
    for i in range(0, len(row), 4):
        state = _mix_number(state, int.from_bytes(row[i : i + 4], "little"))
    state ^= len(row)
    for shift, factor in _FINAL:
        state = ((state ^ (state >> shift)) * factor) & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state & 0x80000000 else state
