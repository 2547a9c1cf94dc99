"""Exact random numbers as strings of bits, of which only as many are drawn as are asked for.

A standard normal or Laplace number is a whole part, a sign, and an infinite string of bits. The
compiled loops of ``loops.exact_noise`` draw the first 64 of these. What is not drawn yet is
uniform, whatever the number was accepted for. Proof: docs/proofs/_secure_noise.md, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from dperm_cli.loops import exact_noise
from dperm_cli.privacy import secure_noise
from dperm_cli.privacy.secure_noise import GAUSSIAN, WORD, WORDS, Source, Uniform


class BitString(NamedTuple):
    """A number of size ``whole`` + ``fraction``, and 1 where it is negative."""

    whole: int
    fraction: Uniform
    negative: int

    def head(self, places: int) -> int:
        """The size times 2^(64 places), rounded down."""
        return (self.whole << (WORD * places)) + self.fraction.head(places)


class BitStrings(Sequence[BitString]):
    """Independent numbers [count], whose first 64 bits stand in arrays.

    Attributes:
        whole: int64 [count], the whole parts of their sizes.
        fraction: uint64 [count], the first 64 bits behind these.
        negative: int64 [count], 1 where a number is negative.

    >>> drawn = draw_strings(GAUSSIAN, 3, secure_noise.system_words)
    >>> len(drawn), drawn[0].head(1) >> WORD == drawn.whole[0]
    (3, True)
    """

    def __init__(self, count: int, later: Iterator[int]) -> None:
        self.whole, self.negative = np.empty(count, np.int64), np.empty(count, np.int64)
        self.fraction = np.empty(count, np.uint64)
        self._later, self._opened = later, dict[int, BitString]()

    def __len__(self) -> int:
        return len(self.whole)

    @overload
    def __getitem__(self, index: int) -> BitString: ...
    @overload
    def __getitem__(self, index: slice) -> list[BitString]: ...
    def __getitem__(self, index: int | slice) -> BitString | list[BitString]:
        """One number, or several: always the same object, so that bits are drawn once."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        if place not in self._opened:
            fraction = Uniform(self._later, int(self.fraction[place]))
            self._opened[place] = BitString(
                int(self.whole[place]), fraction, int(self.negative[place])
            )
        return self._opened[place]

    def put(self, place: int, string: BitString) -> None:
        """Keep a number of which more than 64 bits were drawn."""
        self._opened[place] = string
        self.whole[place], self.negative[place] = string.whole, string.negative
        self.fraction[place] = string.fraction.head(1)


def draw_strings(kind: str, count: int, source: Source) -> BitStrings:
    """Independent standard normals or Laplace numbers, whose bits are drawn when asked for."""
    drawn = BitStrings(count, secure_noise.read_words(np.empty(0, np.uint64), source))
    done, words = 0, source(WORDS[kind] * count + 64)
    while done < count:
        done, used, status = exact_noise.fill_strings(
            kind == GAUSSIAN, words, drawn.whole, drawn.fraction, drawn.negative, done
        )
        words = words[used:]
        if status == exact_noise.UNDECIDED:
            tape = secure_noise.read_words(words, source)
            drawn.put(done, BitString(*secure_noise.draw_string(kind, tape)))
            # words that this draw has not read are its own: it may ask for them later
            done, words = done + 1, words[:0]
        elif status == exact_noise.EXHAUSTED:
            words = np.concatenate([words, source(WORDS[kind] * (count - done) + 64)])
    return drawn
