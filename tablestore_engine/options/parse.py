"""Reading option texts: typed access with defaults, and the check of a whole set before anything is written.

INVARIANT  a value is parsed by the type of its row in table_options.py and nowhere else.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.options.not_built import find_not_built, is_named
from tablestore_engine.options.paimon_keys import PAIMON_KEYS, PREFIXES, is_kept
from tablestore_engine.options.table_options import OPTIONS, REFUSED, Option, OptionType, find_option
from tablestore_engine.options.time_format import DEFAULT_FORMAT, TimeFormat, parse_time_format

_SIZE_UNITS = {
    word: 2**power
    for words, power in (
        (("", "b"), 0),
        (("k", "kb"), 10),
        (("m", "mb"), 20),
        (("g", "gb"), 30),
        (("t", "tb"), 40),
    )
    for word in words
}
_TIME_UNITS = {
    word: factor
    for words, factor in (
        (("", "ms"), 1),
        (("s", "sec", "second", "seconds"), 1000),
        (("m", "min", "minute", "minutes"), 60_000),
        (("h", "hour", "hours"), 3_600_000),
        (("d", "day", "days"), 86_400_000),
    )
    for word in words
}
# ASCII and bounded: other engines read these texts too, and Python itself refuses to read thousands of digits
_NUMBER = re.compile(r"\s*([0-9]{1,40})\s*([a-zA-Z]*)\s*")
_TRUNCATE = re.compile(r"truncate\(([0-9]{1,9})\)")
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,40})\s*")
_INT_MIN, _INT_MAX, _LONG_MAX = -(2**31), 2**31 - 1, 2**63 - 1  # what Java readers of the options hold
# a credential, or what is needed to use one, in any writing: a.b, a-b, a_b, aB, AB; first words, then letters alone
_CREDENTIAL_WORD = re.compile(r"(^|[^a-z])(ssl|sasl|pwd|pass|token|jaas)($|[^a-z])")
_CREDENTIAL = re.compile(
    r"passw|passphrase|secret|credential|sasl|jaas|oauth|keytab|keystore|truststore|connectionstring|bearertoken|"
    r"(account|access|api|private|shared|storage|encryption|signing|master|session|user|service)key"
)
# known to Paimon, without an effect here: to take them in silence would be a promise
_RETAINED_MIN, _RETAINED_MAX = "snapshot.num-retained.min", "snapshot.num-retained.max"
_UNREAD = ("scan.", "log.")
T = TypeVar("T")
_MISSPELT = 0.85  # so like an option that it is meant


def _parse_unit(key: str, text: str, units: Mapping[str, int], example: str) -> int:
    """A number with a unit; FixRequest TS1001 otherwise."""
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise FixRequest(
            "TS1001",
            f"option {key!r} has a value that cannot be read",
            why=f"expected something like {example!r}, got {text!r}",
            fix=f"write {key!r} as a number with a unit",
        )
    return int(match[1]) * units[match[2].lower()]


def parse_size_bytes(key: str, text: str) -> int:
    """`128 mb` -> bytes. Raises FixRequest TS1001."""
    return _parse_unit(key, text, _SIZE_UNITS, "128 mb")


def parse_duration_ms(key: str, text: str) -> int:
    """`1 h` -> milliseconds. Raises FixRequest TS1001."""
    return _parse_unit(key, text, _TIME_UNITS, "1 h")


@dataclass(frozen=True)
class StatsMode:
    """What is kept of a column: null counts, bounds, and at what length texts are cut (None = never)."""

    counts: bool
    bounds: bool
    length: int | None = None


_STATS_MODES = {
    "none": StatsMode(False, False),
    "counts": StatsMode(True, False),
    "full": StatsMode(True, True),
}


def parse_stats_mode(key: str, text: str) -> StatsMode:
    """none, counts, full or truncate(n). Raises FixRequest TS1130."""
    if text in _STATS_MODES:
        return _STATS_MODES[text]
    match = _TRUNCATE.fullmatch(text.replace(" ", ""))
    if match is None or int(match[1]) < 1:
        raise FixRequest(
            "TS1130",
            f"option {key!r} has no value {text!r}",
            why="expected none, counts, full or truncate(n) with n from 1",
            fix=f"set {key!r} to one of these",
        )
    return StatsMode(True, True, int(match[1]))


def _parse_boolean(key: str, text: str) -> bool:
    if text.strip().lower() not in {"true", "false"}:
        raise FixRequest(
            "TS1002",
            f"option {key!r} is not a boolean",
            why=f"expected true or false, got {text!r}",
            fix="write true or false",
        )
    return text.strip().lower() == "true"


def _parse_integer(key: str, text: str) -> int:
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise FixRequest(
            "TS1003", f"option {key!r} is not a whole number", why=f"got {text!r}", fix="write digits only"
        )
    return int(match[1])


def current_names(options: Mapping[str, T]) -> dict[str, T]:
    """Options that are given, under their names of today; given under both, the name of today counts, as in Paimon."""
    made = dict(options)
    for key in options:
        option = find_option(key)
        if option is not None and key in option.old_keys:
            made.setdefault(option.key, made.pop(key))
    return made


def stored_text(values: Mapping[str, str], key: str) -> str | None:
    """The text that a table sets for `key`, under whichever of its names: as Paimon looks for it."""
    names = (
        (key, *OPTIONS[key].old_keys) if key in OPTIONS else (key,)
    )  # those of other engines have one name
    return next((values[name] for name in names if name in values), None)


@dataclass(frozen=True)
class OptionSet:
    """Typed view of a table's options (text -> text); unknown keys are kept, not read."""

    values: Mapping[str, str]

    def find(self, key: str) -> str | None:
        """The text set for `key`, else for one of its old names, else its default, else None."""
        value = stored_text(self.values, key)
        return OPTIONS[key].default if value is None else value

    def text(self, key: str) -> str:
        """As find, for options that always have a value."""
        value = self.find(key)
        if value is None:
            raise FixRequest(
                "TS1004", f"option {key!r} is missing", why="it has no default", fix=f"set {key!r}"
            )
        return value

    def integer(self, key: str) -> int:
        """A whole number. Raises TS1003, TS1004."""
        return _parse_integer(key, self.text(key))

    def find_integer(self, key: str) -> int | None:
        """A whole number, None where none is set. Raises TS1003."""
        text = self.find(key)
        return None if text is None else _parse_integer(key, text)

    def boolean(self, key: str) -> bool:
        """true or false. Raises TS1002, TS1004."""
        return _parse_boolean(key, self.text(key))

    def size_bytes(self, key: str) -> int:
        """A size in bytes. Raises TS1001, TS1004."""
        return parse_size_bytes(key, self.text(key))

    def duration_ms(self, key: str) -> int:
        """A time in milliseconds. Raises TS1001, TS1004."""
        return parse_duration_ms(key, self.text(key))

    def find_duration_ms(self, key: str) -> int | None:
        """The same; None where none is set, or a word such as `never` stands for no end. Raises TS1001."""
        text = self.find(key)
        return None if text is None or text in OPTIONS[key].values else parse_duration_ms(key, text)

    def time_format(self, key: str) -> TimeFormat:
        """How times are written in partition values. Raises Unsupported TS1136."""
        text = self.find(key)
        return DEFAULT_FORMAT if text is None else parse_time_format(text)

    def stats_mode(self, column: str) -> StatsMode:
        """`fields.<column>.stats-mode`, else `metadata.stats-mode`. Raises TS1130."""
        key = f"fields.{column}.stats-mode"
        if key in self.values:
            return parse_stats_mode(key, self.values[key])
        return parse_stats_mode("metadata.stats-mode", self.text("metadata.stats-mode"))

    def columns(self, key: str) -> tuple[str, ...]:
        """Comma-separated column names; empty when absent."""
        value = self.find(key)
        return tuple(part.strip() for part in value.split(",") if part.strip()) if value else ()


def is_credential(key: str) -> bool:
    """Whether a key names a password, key, token or log-in setting, however it is written."""
    plain = unicodedata.normalize("NFKC", key)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", ".", plain).lower()
    return bool(_CREDENTIAL_WORD.search(words) or _CREDENTIAL.search(re.sub(r"[^a-z0-9]", "", words)))


def check_options(values: Mapping[str, str], *, stored: Mapping[str, str] = MappingProxyType({})) -> None:
    """Refuse secrets (TS1005), options that nothing reads (TS1161), unknown keys (TS1006), values that cannot be read
    or used (TS1001-TS1003, TS1007, TS1008, TS1073, TS1084, TS1089, TS1130), settings of Kafka clients (TS1071), and
    keys that nothing reads yet (Unsupported TS1072, TS1573) or values that are not built (TS1136, TS1137).

    `stored`: the table's options. One without a reader that is given as it is stored there is not refused: another
    engine may have set it.
    """
    for key, text in values.items():
        if is_credential(key):
            raise FixRequest(
                "TS1005",
                f"option {key!r} would put a secret into the table",
                why="table options are stored in readable schema files",
                fix="put it under `log:` of the dbt profile (use env_var), or in the environment",
            )
        if key in REFUSED:
            raise FixRequest(
                "TS1161",
                f"option {key!r} cannot be set",
                why=REFUSED[key],
                fix="leave it out",
            )
        _check_built(key, text)
        option = find_option(key)
        if option is not None:
            _check_value(key, option, text)
        elif stored.get(key) != text:
            _check_foreign(key)
    _check_retained(OptionSet(values))
    OptionSet(values).time_format("partition.timestamp-formatter")
    check_expiration_strategy(OptionSet(values))


def check_expiration_strategy(options: OptionSet) -> None:
    """Also asked when partitions are about to expire: another engine may have set it. Raises Unsupported TS1137."""
    strategy = options.text("partition.expiration-strategy")
    if strategy != "values-time":
        raise Unsupported(
            "TS1137",
            f"partition.expiration-strategy {strategy!r} is not supported",
            why="when a partition was last changed is not exactly known: a delete by vectors leaves no file of its "
            "time, and a compaction writes a new one for old rows",
            fix="set partition.expiration-strategy to 'values-time', which reads the time from the partition values",
        )


def _check_retained(options: OptionSet) -> None:
    """Each number is fine by itself; the least must not be more than the most."""
    least, most = options.integer(_RETAINED_MIN), options.find_integer(_RETAINED_MAX)
    if most is not None and least > most:
        raise FixRequest(
            "TS1089",
            f"option {_RETAINED_MAX!r} is less than {_RETAINED_MIN!r}",
            why=f"of the newest snapshots {least} always stay, and no more than {most} may",
            fix=f"set {_RETAINED_MIN!r} to {most} or less",
        )


def _check_built(key: str, text: str) -> None:
    """Raises Unsupported TS1573: the option would be stored without effect."""
    missing = find_not_built(key, text)
    if missing is not None:
        raise Unsupported(
            "TS1573",
            f"option {key!r} cannot be set to {text!r}",
            why=f"it would be stored without effect: {missing.why}",
            fix=missing.fix,
        )


def _check_foreign(key: str) -> None:
    """Keys without a reader here: kept where another program owns them, else refused by name."""
    if key in PAIMON_KEYS and key.startswith(_UNREAD):
        raise Unsupported(
            "TS1072",
            f"option {key!r} is not built yet",
            why="it would be stored and have no effect",
            fix="leave it out; readers choose where they start themselves, topics are made with the table",
        )
    if key.startswith(("kafka.", "schema.registry.")):
        allowed = ", ".join(sorted(known for known in OPTIONS if known.startswith("kafka.")))
        raise FixRequest(
            "TS1071",
            f"option {key!r} is not a table's to set",
            why=f"a table may say {allowed}; brokers, registry, security and all else are configured for the engine",
            fix="put it under `log:` of the dbt profile, or give --bootstrap or TABLESTORE_KAFKA",
        )
    # a prefix is no licence to misspell an option of ours that has it
    near = difflib.get_close_matches(key.lower(), OPTIONS, n=1, cutoff=_MISSPELT)
    if key in PAIMON_KEYS or (not near and (is_kept(key) or is_named(key))):
        return
    near = near or difflib.get_close_matches(key.lower(), [*OPTIONS, *PAIMON_KEYS], n=1)
    kept = f"a key that another program reads, or a note, begins with {', '.join(PREFIXES)}"
    raise FixRequest(
        "TS1006",
        f"there is no option {key!r}",
        why=f"the nearest known one is {near[0]!r}" if near else "no known option has a similar name",
        fix=f"write {near[0]!r}; {kept}" if near else f"leave it out; {kept}",
    )


def _check_value(key: str, option: Option, text: str) -> None:
    match option.type:
        case OptionType.SIZE:
            _check_range(key, option, parse_size_bytes(key, text), most=_LONG_MAX)
        case OptionType.DURATION if text not in option.values:
            _check_range(key, option, parse_duration_ms(key, text), most=_LONG_MAX)
        case OptionType.BOOLEAN:
            _parse_boolean(key, text)
        case OptionType.INTEGER if text.strip().lower() not in option.values:
            _check_range(key, option, _parse_integer(key, text))
        case OptionType.STATS_MODE:
            parse_stats_mode(key, text)
        case OptionType.ENUM:
            if text not in option.values:
                raise FixRequest(
                    "TS1007",
                    f"option {key!r} has no value {text!r}",
                    why=f"expected one of {', '.join(option.values)}",
                    fix=f"set {key!r} to one of these",
                )
        case OptionType.STRING:
            if option.pattern is not None and not re.fullmatch(option.pattern, text):
                raise FixRequest(
                    "TS1084",
                    f"option {key!r} cannot be {text!r}",
                    why=f"expected a text that matches {option.pattern}",
                    fix="leave it out, or write another text",
                )
        case OptionType.COLUMNS | OptionType.DURATION | OptionType.INTEGER:
            return


def _check_range(key: str, option: Option, number: int, *, most: int = _INT_MAX) -> None:
    least = _INT_MIN if option.least is None else option.least
    most = most if option.most is None else option.most
    if number < least:
        raise FixRequest(
            "TS1008",
            f"option {key!r} is too small",
            why=f"the least is {least}, got {number}",
            fix=f"write {least} or more",
        )
    if number > most:
        raise FixRequest(
            "TS1073",
            f"option {key!r} is too large",
            why=f"the most is {most}, got {number}",
            fix=f"write {most} or less",
        )
