"""The result of an import: the archives, and a note for every key of the other tool."""

import re
from collections.abc import Mapping
from functools import partialmethod
from typing import Any, Literal, NamedTuple

from kafka_archiver.messages.secrets import SECRET_NAME, plain_url

# kept: the YAML says the same. differs: another way, on purpose. lacks: no equivalent. by_hand: for a person to do.
# decide: keys, values or records would be others than the tool's, or the file does not tell them: a person decides.
# unknown: the other tool has no such key.
Kind = Literal["kept", "differs", "lacks", "by_hand", "decide", "unknown"]
# Without `--accept`, an import with a note of these kinds ends with an error.
OPEN: tuple[Kind, ...] = ("decide", "unknown")


# Chunks of fewer records are slow and costly.
FEW = 10_000

# Secrets of tools and of their transforms, beside those of `messages.secrets`.
_SECRET_OF_TOOLS = re.compile(r"customer[._-]?key|salt|vault|cipher_?data|key_?set|key_?data|keydata", re.IGNORECASE)
_OF_CODE = re.compile(r"(transforms|predicates)\.[^.]+\.")
# Packages whose transforms and predicates have no secret settings.
_KNOWN_CODE = ("org.apache.kafka.connect.transforms.", "io.confluent.connect.transforms.", "io.lenses.connect.smt.")


class Note(NamedTuple):
    """The outcome of one key, or a remark for a person. `key`: as the file has it; empty for a remark."""

    kind: Kind
    key: str
    text: str


class Draft(NamedTuple):
    """One archive: the content of its YAML, and the notes about it alone."""

    content: dict[str, Any]
    notes: tuple[Note, ...] = ()


class Imported(NamedTuple):
    """The result of an import.

    `tool`: the other tool's name; `notes`: about all archives; `faults`: of what no archive could be made.
    """

    tool: str
    drafts: tuple[Draft, ...]
    notes: tuple[Note, ...]
    faults: tuple[str, ...] = ()


class Remarks:
    """Notes, in the order in which they are made."""

    def __init__(self) -> None:
        self._notes: list[Note] = []

    def remark(self, kind: Kind, text: str) -> None:
        """Add a note about no key."""
        self._notes.append(Note(kind, "", text))

    @property
    def remarks(self) -> tuple[Note, ...]:
        """All of them."""
        return tuple(self._notes)


class Keys(Remarks):
    """The keys of a file. Each that is used gets a note; those without one are unknown.

    `group`: the consumer group that a person has named; empty: the file tells it.
    """

    def __init__(self, values: Mapping[str, str], group: str = "") -> None:
        super().__init__()
        self._values = dict(values)
        self.group = group

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str, default: str = "") -> str:
        """The value of a key, without white space around it."""
        return self._values.get(key, default).strip()

    def raw(self, key: str, default: str = "") -> str:
        """Return the value of a key with the white space around it, which counts in separators."""
        return self._values.get(key, default)

    def number(self, key: str, instead: str, least: int = 1, most: int = 10**18) -> int | None:
        """The whole number of a key, not above `most`; None if there is none, which gets a note unless it is missing.

        :param instead: what the YAML has then, for the note.
        """
        text = self.get(key)
        if key not in self._values:
            return None
        number = whole(text, least)
        if number is None:
            shown = self.shown(key).removeprefix(f"{key}=")
            self.decide(key, f"expected a whole number from {least}, found {shown!r}; {instead}")
        return None if number is None else min(number, most)

    def flag(self, key: str, default: bool) -> bool:
        return self.get(key, str(default)).lower() == "true"

    def starting(self, *prefixes: str) -> list[str]:
        """The keys that begin with one of these texts."""
        return [key for key in self._values if key.startswith(prefixes)]

    def rename(self, old: str, new: str) -> None:
        """Read an older name of a key as its present one; the file has one of them."""
        if old in self._values and new not in self._values:
            self._values = {new if key == old else key: value for key, value in self._values.items()}

    def note(self, kind: Kind, key: str, text: str) -> None:
        """Note what became of a key, if the file has it and it has no note yet."""
        if key in self._values and key not in {note.key for note in self._notes}:
            self._notes.append(Note(kind, key, text))

    # Each notes a key; see `Kind`.
    kept = partialmethod(note, "kept")
    differs = partialmethod(note, "differs")
    lacks = partialmethod(note, "lacks")
    by_hand = partialmethod(note, "by_hand")
    decide = partialmethod(note, "decide")

    def note_section(self, prefix: str, kind: Kind, text: str) -> None:
        """Note the text at the `type` of a transform or predicate; its other keys refer to it."""
        self.note(kind, f"{prefix}type", text)
        for key in self.starting(prefix):
            self.note("kept" if kind == "decide" else kind, key, f"see {prefix}type")

    def table(self, kind: Kind, notes: Mapping[str, str]) -> None:
        """Notes of one kind for those of these keys that have none yet. A key that ends with `*` is a prefix."""
        for pattern, text in notes.items():
            for key in self.starting(pattern[:-1]) if pattern.endswith("*") else [pattern]:
                self.note(kind, key, text)

    def notes(self, tool: str) -> tuple[Note, ...]:
        """All notes, in the order of the file's keys; the remarks first."""
        place = {key: number for number, key in enumerate(self._values)}
        noted = {note.key for note in self._notes}
        unknown = [Note("unknown", key, f"{tool} documents no such key") for key in self._values if key not in noted]
        return tuple(sorted([*self._notes, *unknown], key=lambda note: place.get(note.key, -1)))

    def shown(self, key: str) -> str:
        """A key with its value, as a comment may show it."""
        value = self.get(key)
        names = (SECRET_NAME, _SECRET_OF_TOOLS)
        secret = any(name.search(text) for name in names for text in (key, value)) or self._is_of_unknown_code(key)
        plain = " ".join(value.split())
        # Regular expressions have ? and #, too, so only an address loses what follows them.
        plain = plain_url(plain) if re.search("://|@", plain) else plain
        return f"{key}=…" if secret else f"{key}={plain}"

    def _is_of_unknown_code(self, key: str) -> bool:
        """Return True for a setting of a transform or predicate of an unknown package: any may be secret."""
        match = _OF_CODE.match(key)
        if match is None or key[match.end() :] in ("type", "predicate", "negate"):
            return False
        return not self.get(f"{match[0]}type").startswith(_KNOWN_CODE)


def archive_name(text: str) -> str:
    """A name for an archive, made of another name."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip("_.-")[:200] or "imported"


def words(text: str, separators: str = r",") -> list[str]:
    """The items of a list that is written in one value."""
    return [word.strip() for word in re.split(separators, text) if word.strip()]


def bucket_url(bucket: str, *folders: str) -> str:
    """The address of a folder in a bucket."""
    return "s3://" + "/".join(part.strip("/") for part in (bucket, *folders) if part.strip("/"))


def without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    """A section without keys that have no value."""
    return {key: value for key, value in content.items() if value not in (None, {}, [], "")}


def part_bytes(keys: Keys, key: str, more: str = "") -> int | None:
    """Return `store.part_bytes`. `more`: for the note."""
    size = keys.number(key, "store.part_bytes is left out: 8388608", most=1 << 30)
    keys.kept(key, f"store.part_bytes (at least 5 MiB){more}")
    return size and max(size, 5 << 20)


def small(records: int) -> str:
    """The warning about a chunk of fewer than `FEW` records."""
    return (
        f"store.chunk_records: {records} makes an object of at most so many records, so there are many tiny objects; "
        "100000 and more is faster and costs less"
    )


def whole(text: str, least: int = 1) -> int | None:
    """The whole number that a text is, if it is not below `least`."""
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,40}", text) else None
    return None if number is None or number < least else number


def schedule_of(milliseconds: int | None) -> str | None:
    """The schedule of an interval, if an hour or a day is a multiple of it, and it is not shorter than five minutes."""
    minutes, remainder = divmod(milliseconds or 1, 60_000)
    if remainder:
        return None
    if minutes == 1440:
        return "0 0 * * *"
    if minutes == 60:
        return "0 * * * *"
    return f"*/{minutes} * * * *" if minutes >= 5 and 60 % minutes == 0 else None
