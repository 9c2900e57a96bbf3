"""The texts of the parts of times, for whole batches: the text of most times is known from earlier ones."""

from collections.abc import Sequence
from math import gcd

import numpy as np

from kafka_archiver.model.layouts.date_patterns import shown, step
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.frozen_zone import bounds, local, offset_ms, rounded, zone_of
from kafka_archiver.model.layouts.tokens import TextToken, Time, TimesToken
from kafka_archiver.values.columns import Int64s

# The text of each of the form's times; None: there is no usable time.
Label = tuple[str, ...] | None
# No zone's offset changes more than once in this time.
_QUARTER = 900_000
_KEPT = 100_000


class TimeLabels:
    """Shows times as a form's folders have them."""

    def __init__(self, form: PathForm) -> None:
        self._times = [piece for piece in form.path if isinstance(piece, TimesToken)]
        letters = [token for piece in self._times for token in piece.tokens if isinstance(token, Time)]
        self._zone, self._names, self._every = zone_of(form.zone, form.zone_data), form.names, form.every_ms
        whole = step(letters) if not form.every_ms else gcd(step(letters), form.every_ms)
        self._fine = min(whole, 1000)
        # In UTC nothing but the letters decides. Elsewhere the offset may change at any second.
        self._step = whole if not form.zone_data else min(whole, _QUARTER)
        self._first, self._last = bounds(self._zone)
        # By the number of a step its label, in a tuple; an empty tuple if it has several.
        self._known: dict[int, tuple[Label, ...]] = {}

    def labels(self, times: Int64s) -> tuple[Int64s, Sequence[Label]]:
        """For each time (milliseconds since 1970) the index of its label, and the labels, each once."""
        steps = times // self._step
        if len(steps) and steps.min() == steps.max() and (only := self._labels(int(steps[0]))):
            return np.zeros(len(times), np.int64), only
        unique, rows = np.unique(steps, return_inverse=True)
        labels: dict[Label, int] = {}
        codes = np.full(len(unique), -1)
        for number, start in enumerate(unique.tolist()):
            if of_step := self._labels(start):
                codes[number] = labels.setdefault(of_step[0], len(labels))
        every = codes[rows]
        for row in np.flatnonzero(every < 0).tolist():
            moment = int(times[row]) // self._fine * self._fine
            every[row] = labels.setdefault(self._shown(moment), len(labels))
        return every, list(labels)

    def _labels(self, number: int) -> tuple[Label, ...]:
        """The one label of all times of a step; none if they have several."""
        if number not in self._known:
            if len(self._known) > _KEPT:
                self._known.clear()
            self._known[number] = self._of_step(number * self._step)
        return self._known[number]

    def _of_step(self, first: int) -> tuple[Label, ...]:
        last = first + self._step - 1
        if last < self._first or first > self._last:
            return (None,)
        if first < self._first or last > self._last:
            return ()
        offset = offset_ms(first, self._zone)
        if offset != offset_ms(last, self._zone) or offset % self._step:
            return ()
        return (self._shown(first),)

    def _shown(self, moment: int) -> Label:
        if not self._first <= moment <= self._last:
            return None
        local_time = rounded(local(moment, self._zone), self._every)
        return tuple(
            "".join(t.text if isinstance(t, TextToken) else shown(t, local_time, self._names) for t in piece.tokens)
            for piece in self._times
        )
