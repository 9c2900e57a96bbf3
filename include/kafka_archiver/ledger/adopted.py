"""The documents about adopted objects: each is written once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from kafka_archiver.ledger.documents import Documents
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.adopted import (
    AdoptedListing,
    AdoptedPage,
    AdoptedPartition,
    AdoptedReading,
    Adoption,
    AdoptionBegun,
    PageRef,
)
from kafka_archiver.model.object_keys import (
    adopted_page_document,
    adopted_prefix,
    adopted_work_document,
    adoption_begun_document,
    adoption_document,
)

# Pages that are read ahead.
_AHEAD = 8


class AdoptedDocuments(Documents):
    """The objects of other tools that an archive has adopted."""

    __slots__ = ()

    def adoption(self) -> Adoption | None:
        """Return the head; None: nothing is adopted, or not all yet."""
        return self._read(Adoption, adoption_document(self.archive))

    def adopted_page(self, partition: AdoptedPartition, ref: PageRef) -> AdoptedPage:
        """Return a page.

        :raises IntegrityError: it is gone, or not the one that the head names.
        """
        key = adopted_page_document(self.archive, partition.topic, partition.partition, ref.number)
        page = self._read(AdoptedPage, key)
        if page is None or page.digest != ref.digest:
            state = "is gone" if page is None else "is not the page that adoption.json names"
            raise IntegrityError(f"{self._name(key)} {state}: restore it from a version or copy of the store")
        return page

    def adopted_pages(self, adoption: Adoption) -> Iterator[AdoptedPage]:
        """Yield all pages; a few are read ahead."""
        refs = ((partition, ref) for partition in adoption.partitions for ref in partition.pages)
        with ThreadPoolExecutor(_AHEAD) as pool:
            while some := list(islice(refs, _AHEAD)):
                yield from pool.map(self.adopted_page, *zip(*some, strict=True))

    def create_adoption(self, document: Adoption) -> bool:
        """Write the head. Returns False if there is one."""
        return self.store.create(adoption_document(self.archive), self._bytes(document))

    def create_page(self, page: AdoptedPage) -> bool:
        """Write a page. Returns False if there is one with other bytes."""
        key = adopted_page_document(self.archive, page.topic, page.partition, page.number)
        return self._create_same(key, self._bytes(page))

    def adoption_begun(self) -> AdoptionBegun | None:
        """Return what an adoption that is not finished has listed; None: not all yet."""
        return self._read(AdoptionBegun, adoption_begun_document(self.archive))

    def create_begun(self, document: AdoptionBegun) -> bool:
        """Write it. Returns False if another adoption has begun."""
        return self._create_same(adoption_begun_document(self.archive), self._bytes(document))

    def put_listing(self, listing: AdoptedListing) -> None:
        """Write a part of the listing, in place of one that no document names."""
        self.store.put(adopted_work_document(self.archive, "listing", listing.number), self._bytes(listing))

    def adopted_listing(self, number: int) -> AdoptedListing | None:
        """Return a part of the listing."""
        return self._read(AdoptedListing, adopted_work_document(self.archive, "listing", number))

    def adopted_reading(self, number: int) -> AdoptedReading | None:
        """Return what reading a part has shown; None: it was not read yet."""
        return self._read(AdoptedReading, adopted_work_document(self.archive, "reading", number))

    def create_reading(self, reading: AdoptedReading) -> None:
        """Write what reading a part has shown, unless another process has."""
        self.store.create(adopted_work_document(self.archive, "reading", reading.number), self._bytes(reading))

    def remove_adopted_work(self) -> None:
        """Remove what only an unfinished adoption needs; what says that it has begun goes last."""
        begun = adoption_begun_document(self.archive)
        for stat in self.store.list(f"{adopted_prefix(self.archive)}work/"):
            if stat.key != begun:
                self.store.delete(stat.key)
        self.store.delete(begun)

    def _create_same(self, key: str, data: bytes) -> bool:
        return self.store.create(key, data) or self.store.get(key) == data
