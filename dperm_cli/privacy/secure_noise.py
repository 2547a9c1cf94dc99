"""Exact noise on a grid from the operating system's generator.

The compiled loops of ``loops.exact_noise`` look at the first 64 bits of every uniform number. In
the rare case that these do not decide, ``draw`` makes the same draw from the same random words, and
reads as many more bits as it needs. So the law is exact: no probability is rounded, however small.
Proof: docs/proofs/_secure_noise.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator

import numpy as np

from dperm_cli.loops import exact_noise

Source = Callable[[int], np.ndarray]
GAUSSIAN, LAPLACE = "gaussian", "laplace"
WORDS = {GAUSSIAN: 24, LAPLACE: 6}  # of one draw, on average, and some more
WORD = 64


def system_words(count: int) -> np.ndarray:
    """``count`` random words (uint64) of the operating system's cryptographic generator."""
    return np.frombuffer(os.urandom(8 * count), dtype="<u8").astype(np.uint64)


def draw_rounded_noise(
    kind: str, ratio: float, count: int, source: Source = system_words
) -> np.ndarray:
    """``count`` draws of ratio * N(0, 1), or of ratio * Laplace(1), rounded to integers: int64.

    ``ratio`` = scale / grid, between 2^8 and 2^45; the law is that of the real-valued noise of
    exactly this scale, rounded.
    """
    mantissa, shift = split_ratio(ratio)
    out, done = np.empty(count, np.int64), 0
    words = source(WORDS[kind] * count + 64)
    while done < count:
        done, used, status = exact_noise.fill(
            kind == GAUSSIAN, words, np.uint64(mantissa), shift, out, done
        )
        words = words[used:]
        if status == exact_noise.UNDECIDED:
            out[done] = draw(kind, read_words(words, source), mantissa, shift)
            # words that this draw has not read are dropped
            done, words = done + 1, words[:0]
        elif status == exact_noise.EXHAUSTED:
            words = np.concatenate([words, source(WORDS[kind] * (count - done) + 64)])
    return out


def split_ratio(ratio: float) -> tuple[int, int]:
    """ratio = mantissa / 2^shift with a mantissa of 53 bits."""
    fraction, exponent = math.frexp(ratio)
    if not 8 < exponent <= 46:
        raise ValueError(f"a noise scale of {ratio:g} grid steps; between 2^8 and 2^45 are served")
    return int(fraction * 2.0**53), 53 - exponent


def read_words(words: np.ndarray, source: Source) -> Iterator[int]:
    """The given words in order; when they are used up, more from the source."""
    while True:
        yield from map(int, words)
        words = source(64)


class Uniform:
    """A uniform number in (0, 1), whose bits are drawn only when they are asked for."""

    def __init__(self, words: Iterator[int], first: int | None = None) -> None:
        """``first``: its first 64 bits, where these were drawn already."""
        self._words, self._digits = words, [next(words) if first is None else first]

    def digit(self, place: int) -> int:
        while place >= len(self._digits):
            self._digits.append(next(self._words))
        return self._digits[place]

    def below(self, other: Uniform) -> bool:
        """self < other; equal numbers have probability zero."""
        place = 0
        while self.digit(place) == other.digit(place):
            place += 1
        return self.digit(place) < other.digit(place)

    def head(self, places: int) -> int:
        """The first ``places`` words as one integer."""
        value = 0
        for place in range(places):
            value = value << WORD | self.digit(place)
        return value


def draw(kind: str, words: Iterator[int], mantissa: int, shift: int) -> int:
    """One draw, as the compiled loops would make it if they looked at all bits."""
    k, x, negative = draw_string(kind, words)
    size = find_nearest(k, x, mantissa, shift)
    return -size if negative else size


def draw_string(kind: str, words: Iterator[int]) -> tuple[int, Uniform, int]:
    """A standard draw that is not rounded: k and x of its size k + x, and 1 where it is negative.

    What was not read of x yet is uniform, whatever the draw was accepted for.
    """
    k, x = (_normal if kind == GAUSSIAN else _exponential)(words)
    return k, x, next(words) >> (WORD - 1)


def find_nearest(k: int, x: Uniform, mantissa: int, shift: int) -> int:
    """floor(mantissa (k + x) / 2^shift + 1/2), reading as many words of x as are needed."""
    places = 1
    while True:
        bits = WORD * places
        head, half = (k << bits) + x.head(places), 1 << (bits + shift - 1)
        low = (mantissa * head + half) >> (bits + shift)
        if low == (mantissa * (head + 1) + half - 1) >> (bits + shift):
            return low
        places += 1


def _has_even_run(words: Iterator[int], y: Uniform, n: int) -> bool:
    while True:
        z = Uniform(words)
        if not z.below(y):
            return n % 2 == 0
        y, n = z, n + 1


def _root_e(words: Iterator[int]) -> bool:
    z = Uniform(words)
    return True if z.digit(0) >> (WORD - 1) else _has_even_run(words, z, 1)


def draw_below(words: Iterator[int], m: int) -> int:
    """A uniform integer below m."""
    while True:
        word = next(words)
        if word < 2**WORD - 2**WORD % m:
            return word % m


def _accept_candidate(words: Iterator[int], k: int, x: Uniform) -> bool:
    y, n = x, 0
    while True:
        z = Uniform(words)
        if not z.below(y):
            return n % 2 == 0
        j = draw_below(words, 2 * k + 2)
        if j == 0 or (j == 1 and not Uniform(words).below(x)):
            return n % 2 == 0
        y, n = z, n + 1


def _normal(words: Iterator[int]) -> tuple[int, Uniform]:
    while True:
        k = 0
        while _root_e(words):
            k += 1
        if not all(_root_e(words) for _ in range(k * (k - 1))):
            continue
        x = Uniform(words)
        if all(_accept_candidate(words, k, x) for _ in range(k + 1)):
            return k, x


def _exponential(words: Iterator[int]) -> tuple[int, Uniform]:
    k = 0
    while True:
        x = Uniform(words)
        if _has_even_run(words, x, 0):
            return k, x
        k += 1
