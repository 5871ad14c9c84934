"""Words of the tables: those that the queries look for, and others of the same kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (  # name, region
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4),
    ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
BRANDS = tuple(f"Brand#{maker}{number}" for maker in range(1, 6) for number in range(1, 6))
TYPES = tuple(
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
CONTAINERS = tuple(
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
COLORS = _words(
    "amber ash azure beige black blue bone bronze brown camel carmine cedar cherry clay coal cobalt copper coral "
    "cotton cream crimson cyan denim ebony emerald fawn fern flax forest fuchsia garnet ginger gold granite grape "
    "gray green hazel henna indigo iris ivory jade jet khaki lava lavender lemon lilac lime linen magenta mango maple "
    "maroon mauve mint moss mustard navy oat ochre olive onyx opal orange orchid peach pearl pine pink plum poppy "
    "purple quartz red rose ruby rust saffron sage salmon sand sapphire scarlet sepia sienna silver slate snow"
)
_COMMENTS = _words(
    "final pending even regular quick bold careful silent express unusual accounts deposits packages theories requests "
    "ideas pinto foxes courts dolphins sleep wake nag haggle above across beyond along the furiously slyly"
)


def pick(rng: np.random.Generator, words: Sequence[str], count: int) -> pa.Array:
    """Each as likely as the others."""
    return pa.array(list(words), pa.string()).take(pa.array(rng.integers(0, len(words), count)))


def phrases(
    rng: np.random.Generator, count: int, kinds: int = 2000, special: str | None = None, share: float = 0.0
) -> pa.Array:
    """Comments of four to eight words; `special` instead of one in a `share` of them, at least in one."""
    pool = [" ".join(rng.choice(_COMMENTS, rng.integers(4, 9))) for _ in range(kinds)]
    picked = rng.integers(0, kinds, count)
    if special is not None:
        pool.append(special)
        chosen = rng.random(count) < share
        chosen[rng.integers(0, count)] |= share > 0 and count > 0
        picked[chosen] = kinds
    return pa.array(pool, pa.string()).take(pa.array(picked))


def part_names(rng: np.random.Generator, count: int) -> pa.Array:
    """Five colors each."""
    picked = rng.integers(0, len(COLORS), (count, 5))
    return pa.array([" ".join(COLORS[at] for at in row) for row in picked.tolist()], pa.string())
