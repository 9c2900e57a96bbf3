"""The pages and the account of a partition's objects. Pure."""

from collections.abc import Callable, Iterator

from kafka_archiver.model.adopted import PAGE, AdoptedObject, AdoptedPage, AdoptedPartition, LeftOut, PageRef
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.adopt.offsets import copy_of


class PartitionAccount:
    """Takes the objects of a partition in the order of their first offsets.

    :param write: receives each page when it is full.
    :param leave_out: receives the objects that are copies of others.
    """

    def __init__(
        self,
        archive: str,
        topic: str,
        partition: int,
        write: Callable[[AdoptedPage], object],
        leave_out: Callable[[LeftOut], object],
    ) -> None:
        self._archive, self._topic, self._partition = archive, topic, partition
        self._write, self._leave_out = write, leave_out
        self._pages: list[PageRef] = []
        self._page: list[AdoptedObject] = []
        self._gaps: list[Range] = []
        self._longest: AdoptedObject | None = None
        self._first: int | None = None
        self._end = 0
        self._objects = self._rows = self._bytes = self._placed = self._unproven = 0

    def take(self, items: Iterator[AdoptedObject]) -> AdoptedPartition | None:
        """Take all objects; return the account. None: no object stays."""
        for item in items:
            reason = copy_of(item, self._longest) if self._longest else None
            if reason:
                self._leave_out(LeftOut(key=item.key, reason=reason))
            else:
                self._take(item)
        self._close_page()
        if self._first is None:
            return None
        return AdoptedPartition(
            topic=self._topic,
            partition=self._partition,
            objects=self._objects,
            rows=self._rows,
            bytes=self._bytes,
            placed=self._placed,
            loose=self._rows - self._placed,
            first_offset=self._first,
            last_offset=self._end - 1,
            unproven=self._unproven,
            pages=tuple(self._pages),
        )

    def _take(self, item: AdoptedObject) -> None:
        sure = item.sure
        if self._first is None:
            self._first = self._end = sure.start
        if sure.start > self._end:
            self._gaps.append(Range(self._end, sure.start))
            self._unproven += sure.start - self._end
        # Of offsets that two objects share, the first one's rows count.
        new = max(0, sure.end - max(sure.start, self._end))
        if item.offsets in ("each", "within"):
            self._unproven += max(0, new - item.rows)
        self._end = max(self._end, sure.end)
        self._objects, self._rows, self._bytes = self._objects + 1, self._rows + item.rows, self._bytes + item.bytes
        self._placed += item.rows if item.offsets == "each" else 0
        if self._longest is None or item.last_offset >= self._longest.last_offset:
            self._longest = item
        self._page.append(item)
        if len(self._page) == PAGE:
            self._close_page()

    def _close_page(self) -> None:
        if not self._page:
            return
        page = AdoptedPage(
            archive=self._archive,
            topic=self._topic,
            partition=self._partition,
            number=len(self._pages),
            unproven=tuple((gap.start, gap.end) for gap in self._gaps),
            objects=tuple(self._page),
        )
        self._write(page)
        self._pages.append(
            PageRef(
                number=page.number,
                first=min(item.sure.start for item in page.objects),
                last=max(item.sure.end for item in page.objects) - 1,
                objects=len(page.objects),
                loose=sum(item.offsets != "each" for item in page.objects),
                digest=page.digest,
            )
        )
        self._page, self._gaps = [], []
