"""What a run of a foreign mechanism leaves: numbers, their form, an error and what it printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

from dperm_cli.core.dataclass import dataclass

_LONGEST = 400  # characters kept of a message or a printed text
_MOST_NUMBERS = 20_000


@dataclass(frozen=True)
class Output:
    """What one run left.

    Attributes:
        numbers: All numbers of the result, in the order of its keys.
        form: The shape of the result, or ``error: CLASS: message``.
        text: Texts in the result.
        printed: What was printed, and warnings.
    """

    numbers: tuple[float, ...]
    form: str
    text: str = ""
    printed: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the run failed."""
        return self.form.startswith("error: ")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: each number as a text that gives its bits again."""
        return asdict(self) | {"numbers": [number.hex() for number in self.numbers]}

    @classmethod
    def of_dict(cls, found: Mapping[str, Any]) -> Output:
        """The output that ``to_dict`` describes."""
        numbers = tuple(float.fromhex(word) for word in found["numbers"])
        return cls(numbers, found["form"], found["text"], found["printed"])


def describe_result(value: Any, printed: str = "") -> Output:
    """The output of a run that returned a value.

    Args:
        value: Numbers, arrays, texts, and lists and maps of them.
        printed: What the run printed.
    """
    numbers: list[float] = []
    texts: list[str] = []
    form = _walk(value, numbers, texts)
    return Output(tuple(numbers), form[:_LONGEST], "\n".join(texts)[:_LONGEST], printed[:_LONGEST])


def describe_failure(kind: str, message: str, printed: str = "") -> Output:
    """The output of a run that failed with an error of this class."""
    words = f"error: {kind}: {' '.join(message.split())}"
    return Output((), words[:_LONGEST], "", printed[:_LONGEST])


def _walk(value: Any, numbers: list[float], texts: list[str]) -> str:
    """Add the numbers and texts of a value, and describe its form."""
    if value is None:
        return "nothing"
    if isinstance(value, str | bytes):
        texts.append(value if isinstance(value, str) else value.decode(errors="replace"))
        return "text"
    if isinstance(value, Mapping):
        parts = [f"{key}: {_walk(value[key], numbers, texts)}" for key in sorted(value, key=str)]
        return f"{{{', '.join(parts)}}}"
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            flat = array.astype(float).ravel()[:_MOST_NUMBERS]
            numbers += flat.tolist()
            return f"numbers {list(array.shape)}"
    except (ValueError, TypeError):
        pass
    if isinstance(value, Sequence):
        return f"[{', '.join(_walk(one, numbers, texts) for one in value)}]"
    texts.append(type(value).__name__)
    return "object"


class Sample:
    """The outputs of many runs on one table, as arrays.

    Args:
        outputs: One for each run.
        width: The numbers of a row of ``matrix``; the most frequent count where it is None.
    """

    def __init__(self, outputs: Sequence[Output], width: int | None = None) -> None:
        self.outputs = list(outputs)
        self.width = find_width(self.outputs) if width is None else width

    def __len__(self) -> int:
        return len(self.outputs)

    @cached_property
    def matrix(self) -> np.ndarray:
        """The numbers, [runs, width]; nan where a run left another count of them."""
        blank = (np.nan,) * self.width
        rows = [o.numbers if len(o.numbers) == self.width else blank for o in self.outputs]
        return np.array(rows, dtype=float).reshape(len(rows), self.width)

    @cached_property
    def is_missing(self) -> np.ndarray:
        """Whether a run left no result of the usual form, [runs]."""
        return np.array([o.is_error or len(o.numbers) != self.width for o in self.outputs])

    def list_keys(self, field: str) -> list[str]:
        """What is compared exactly, a text for each run.

        Args:
            field: ``form``, ``printed``, ``value`` (all bits of all numbers, and texts) or
                ``value 3`` (of one number).
        """
        if field == "form":
            return [output.form for output in self.outputs]
        if field == "printed":
            return [output.printed for output in self.outputs]
        name, _, place = field.partition(" ")
        if name != "value":
            raise ValueError(f"no field {field!r}")
        if place:
            return [number.hex() for number in self.matrix[:, int(place)].tolist()]
        return [
            " ".join([number.hex() for number in output.numbers] + [output.text])
            for output in self.outputs
        ]

    def split(self) -> tuple[Sample, Sample]:
        """Every second run, and the others."""
        return Sample(self.outputs[::2], self.width), Sample(self.outputs[1::2], self.width)


def find_width(outputs: Sequence[Output]) -> int:
    """The most frequent count of numbers among the runs that did not fail."""
    counts = Counter(len(output.numbers) for output in outputs if not output.is_error)
    return counts.most_common(1)[0][0] if counts else 0
