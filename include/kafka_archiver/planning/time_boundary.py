"""Finds where the records of a log begin to be of a time or later, although single ones have wrong clocks. Pure.

Kafka's time index gives the first record of a time or later. One record of the year 2090 is that for every hour after
it. So the times of records behind it are asked for, here and there: if some are earlier, a binary search follows, by
the majority of records around each place.

The search divides at multiples of powers of two, whatever the log's first and last offsets are. So the end of one hour
and the begin of the next are the same place, also if the log has grown meanwhile, and the hours together leave nothing
out.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from kafka_archiver.values.ranges import Range

# The search ends at so many offsets. As many more are taken on both sides.
SMALL = 32
# Records that are asked for at each place (`kafka.first_records.RECORDS`), and places on each side of a middle.
_RECORDS = 3
_AROUND = 3


class TimeBoundary:
    """The search for one time in one log.

    :param time: milliseconds since 1970.
    :param first: the offset that the index gives; nothing before it is of the time.
    :param end: the boundary is not searched behind this offset.
    :param tolerated: records that are older than the time by no more milliseconds are no reason to search.
    """

    def __init__(self, time: int, first: int, end: int, tolerated: int = 0) -> None:
        self._time, self._first, self._end = time, first, end
        self._earliest = time - tolerated
        self._low, self._width = 0, 0
        self._looked = first >= end
        self.is_moved = False
        """True if records behind the index's answer are earlier."""

    @property
    def is_done(self) -> bool:
        return self._looked and self._width <= SMALL

    @property
    def range(self) -> Range:
        """The offsets among which the boundary is; empty: at its start."""
        if not self.is_moved:
            return Range(self._first, self._first)
        start = max(self._first, self._low - SMALL)
        return Range(start, max(start, min(self._low + self._width + SMALL, self._end)))

    def places(self) -> Sequence[int]:
        """Return the offsets at which records are asked for next."""
        if not self._looked:
            return [*self._far()]
        step = max(1, self._width // SMALL)
        # As many on both sides: else the middle of those that are left would be elsewhere.
        most = min(_AROUND, (self._middle - self._first - 1) // step, (self._end - self._middle - 1) // step)
        return [self._middle + step * by for by in range(-most, most + 1)]

    def see(self, times: Mapping[int, int]) -> None:
        """Take the times of records by offset: those that were asked for, and any others."""
        offsets = sorted(times)
        if not self._looked:
            self._look([(place, self._at(place, offsets, times)) for place in self._far()])
        else:
            near_places = {o: t for place in self.places() for o, t in self._at(place, offsets, times).items()}
            self._go([time for time in near_places.values() if time >= 0])
        while not self.is_done and not (self._first < self._middle < self._end):
            self._halve(left=self._middle >= self._end)

    def _at(self, place: int, offsets: Sequence[int], times: Mapping[int, int]) -> dict[int, int]:
        begin = bisect_left(offsets, place)
        return {o: times[o] for o in offsets[begin : begin + _RECORDS] if o < self._end}

    def _far(self) -> Iterator[int]:
        """Yield the offsets 1, 4, 16, 64, … behind the index's answer."""
        by = 1
        while self._first + by < self._end:
            yield self._first + by
            by *= 4

    def _look(self, times_at: Sequence[tuple[int, Mapping[int, int]]]) -> None:
        self._looked = True
        early = [place for place, times in times_at if any(0 <= time < self._earliest for time in times.values())]
        if not early:
            return
        self.is_moved = True
        # Behind the last early one, two places had later records only.
        self._end = min(self._end, self._first + 16 * (early[-1] - self._first))
        self._width = 1 << self._end.bit_length()

    def _go(self, known_times: Sequence[int]) -> None:
        self._halve(left=2 * sum(time >= self._time for time in known_times) > len(known_times) or not known_times)

    @property
    def _middle(self) -> int:
        return self._low + self._width // 2

    def _halve(self, left: bool) -> None:
        self._width //= 2
        if not left:
            self._low += self._width
