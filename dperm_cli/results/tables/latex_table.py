"""A chosen table as LaTeX: floats that fit a column of a page, with the package booktabs alone.

Widths are measured in Computer Modern, the font of LaTeX's own classes. Columns have room in the
order of the table; words that are too wide are broken over lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dperm_cli.core import checks
from dperm_cli.core.dataclass import dataclass
from dperm_cli.results.tables.chosen_table import ChosenTable, Column, Group

# TeX points of a line of the class article: in one of two columns, and over both
WIDTHS = {"single": 229.8, "double": 469.7}
MOST_LINES = 40  # of a float, so that it fits a page
MOST_NOTES = 14
_GAP = 6.0  # points between two columns
_SIZES = (("footnotesize", 8.0 * 1.063), ("scriptsize", 7.0 * 1.139))  # small fonts run wider
_LETTER = (
    4.25  # points of a letter where all are as wide as digits: optional columns have this room
)
_LONG = 14  # letters of a word that may be broken
_EMS = {
    277: "!',.:;<[]_`il", 305: "fj", 333: "-", 361: "I", 389: "()tr", 395: "s", 445: "cez",
    473: "?", 528: "kqvxyJ", 556: "Sbdhnpu", 625: "ZL", 681: "FEP", 750: "BCTwRAHNUVXY",
    784: "DGO&+=@KQ>", 834: "#%m", 1028: "M|W",
}  # fmt: skip
_EM = {mark: ems / 1000.0 for ems, marks in _EMS.items() for mark in marks}
_DIGIT = 0.5  # of an em, as all other marks

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
_SYMBOLS = {"epsilon": r"$\varepsilon$", "delta": r"$\delta$", "n": "$n$", "p": "$p$"}
_SHORT = {"accuracy": "acc.", "certified": "cert.", "accounted": "acc."}
_POWER = re.compile(r"(-?)(\d+(?:\.\d+)?)e(-?\d+)")
_PLACE = re.compile(r"(epsilon|delta|n|p) (\S+)")  # on an axis
_PLAIN = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class _Layout:
    """Which columns are shown, the size of the letters, and widths of those that are broken."""

    columns: tuple[int, ...]
    size: str
    broken: tuple[tuple[int, float], ...] = ()


def write_latex(table: ChosenTable, width: str = "single") -> str:
    """The table as floats of LaTeX, each with its caption; the last one has the notes.

    Args:
        table: The table; columns without room are left out, the last ones first, and named in a
            comment.
        width: ``single`` for a column of a page with two, ``double`` for both.
    """
    points = WIDTHS[checks.choice("width", width, WIDTHS)]
    layout = _choose_layout(table, points)
    left_out = [c.name for i, c in enumerate(table.columns) if i not in layout.columns]
    lines = ["% needs \\usepackage{booktabs}"]
    lines += [f"% no room for: {', '.join(left_out)}"] * bool(left_out)
    shown = table.keep_columns(layout.columns)
    parts = _split(shown.groups)
    for place, part in enumerate(parts):
        words = f" ({place + 1} of {len(parts)})" if len(parts) > 1 else ""
        notes = table.notes if place == len(parts) - 1 else ()
        lines += _write_float(shown, part, f"{table.caption}{words}", notes, layout, width)
    return "\n".join(lines) + "\n"


def measure_text(text: str) -> float:
    """The width of a cell's text in ems of its font, as it is printed.

    >>> measure_text("10"), round(measure_text("1.2e-5"), 2)
    (1.0, 3.17)
    """
    power = _POWER.fullmatch(text)
    if power:
        sign, digits, exponent = power.groups()
        return _sum(digits) + 0.78 * bool(sign) + 0.73 + 2 * _DIGIT + 0.7 * _sum(exponent)
    if _PLAIN.fullmatch(text) and text.startswith("-"):
        return 0.78 + _sum(text[1:])
    place = _PLACE.fullmatch(text)
    if place:
        return 0.95 + measure_text(place[2])
    return _sum(text.replace(" .. ", "0"))


def _sum(text: str) -> float:
    return sum(_EM.get(mark, 1 / 3 if mark == " " else _DIGIT) for mark in text)


# ---- what has room -------------------------------------------------------------------------------


def _choose_layout(table: ChosenTable, points: float) -> _Layout:
    """All columns that have room: those that are needed first, then the others in their order."""
    columns = table.columns
    order = sorted(range(len(columns)), key=lambda i: not columns[i].needed)
    needed = [i for i in order if columns[i].needed]
    core = order[: len(needed) + 1]
    for size, em in _SIZES:
        widths = [_measure_column(table, i) * em for i in range(len(columns))]
        broken = _break_words(table, core, widths, em, points)
        if broken is None:
            continue
        for place, width in broken:
            widths[place] = width
        letters = [_count_letters(table, i) for i in range(len(columns))]
        kept = list(core)
        for i in order[len(core) :]:
            more = [*kept, i]
            typed = _LETTER * (sum(letters[place] for place in more) + 2 * len(more))
            if _total(more, widths) > points or typed > points + 2 * _LETTER:
                break
            kept = more
        return _Layout(tuple(sorted(kept)), size, broken)
    if len(core) == 1:  # a column of its own that cannot be broken far enough
        return _Layout((0,), _SIZES[-1][0], ((0, points),))
    # more columns tell the rows apart than there is room for: the last ones go
    fewer = [*needed, *order][: len(core) - 1] if len(needed) > 1 else order[: len(core) - 1]
    found = _choose_layout(table.keep_columns(sorted(fewer)), points)
    places = sorted(fewer)
    return _Layout(
        tuple(places[i] for i in found.columns),
        found.size,
        tuple((places[i], width) for i, width in found.broken),
    )


def _total(kept: Sequence[int], widths: Sequence[float]) -> float:
    return sum(widths[i] for i in kept) + _GAP * (len(kept) - 1)


def _measure_column(table: ChosenTable, place: int) -> float:
    """The width of a column in ems, with the room that aligns its numbers."""
    texts = [line[place] for line in table.lines]
    most = 0.0
    if not table.columns[place].left:
        places = _count_places(texts)
        most = max((measure_text(t + _pad(t, places)) for t in texts), default=0.0)
    plain = max(map(measure_text, texts), default=0.0)
    return max(most, plain, _measure_head(table.columns[place]))


def _count_letters(table: ChosenTable, place: int) -> int:
    column, texts = table.columns[place], [line[place] for line in table.lines]
    places = 0 if column.left else _count_places(texts)
    shown = [text.replace(" .. ", "--") + _pad(text, places) for text in texts]
    return max(len(_PLACE.sub(r"e \2", t)) for t in [_shorten(column.head, "e"), *shown])


def _measure_head(column: Column) -> float:
    return _sum(_shorten(column.head, "d"))


def _shorten(head: str, symbol: str = "") -> str:
    """A heading in short words; ``symbol`` stands for a Greek letter."""
    greek = {"epsilon": symbol, "delta": symbol} if symbol else {}
    short = {**_SHORT, **greek}
    return " ".join(short.get(word, word) for word in head.split(" ")).replace("excess ", "")


def _break_words(
    table: ChosenTable, core: Sequence[int], widths: Sequence[float], em: float, points: float
) -> tuple[tuple[int, float], ...] | None:
    """Widths of columns of words, broken so that these columns have room; None if they have not."""
    missing = _total(core, widths) - points
    if missing <= 0.0:
        return ()
    words = [i for i in core if table.columns[i].left]
    least = {i: _measure_pieces(table, i) * em for i in words}
    spare = {i: widths[i] - least[i] for i in words if widths[i] > least[i]}
    if sum(spare.values()) < missing:
        return None
    share = missing / sum(spare.values())
    return tuple((i, widths[i] - share * room) for i, room in spare.items())


def _measure_pieces(table: ChosenTable, place: int) -> float:
    """The widest piece of a column's words that is not broken, in ems."""
    texts = [_shorten(table.columns[place].head), *(line[place] for line in table.lines)]
    return max(measure_text(piece) for text in texts for piece in _cut(text)) + 0.1


def _cut(text: str) -> list[str]:
    """A text where it may be broken: after its signs, at spaces, and in long words."""
    pieces = re.findall(r"[^\s_/(=,]*[_/(=,]?", text)
    cut = [piece[i : i + _LONG] for piece in pieces for i in range(0, len(piece), _LONG)]
    return [piece for piece in cut if piece] or [""]


# ---- writing -------------------------------------------------------------------------------------


def _split(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups in floats of at most ``MOST_LINES`` lines; a long group goes on in the next."""
    parts: list[list[Group]] = [[]]
    used = 0
    for group in groups:
        head = 1 if group.title else 0
        left = list(group.lines)
        while left:
            room = MOST_LINES - used - head
            if room < min(len(left), 4) and parts[-1]:
                parts.append([])
                used = 0
                continue
            parts[-1].append(Group(group.title, tuple(left[:room])))
            used += head + len(left[:room])
            left = left[room:]
    return parts


def _write_float(
    table: ChosenTable,
    groups: Sequence[Group],
    caption: str,
    notes: Sequence[str],
    layout: _Layout,
    width: str,
) -> list[str]:
    star = "*" if width == "double" else ""
    broken = {layout.columns.index(place): points for place, points in layout.broken}
    sides = [
        f"p{{{broken[i]:.1f}pt}}" if i in broken else "l" if column.left else "r"
        for i, column in enumerate(table.columns)
    ]
    lines = [f"\\begin{{table{star}}}", "\\centering\\sloppy"]
    lines += [f"\\caption{{{_sentence(caption)}}}"] if caption else []
    if groups:
        lines += [f"\\{layout.size}\\setlength{{\\tabcolsep}}{{{_GAP / 2:.0f}pt}}",
                  f"\\begin{{tabular}}{{@{{}}{''.join(sides)}@{{}}}}", "\\toprule"]  # fmt: skip
        lines.append(_join([_write_head(column.head) for column in table.columns]))
        for place, group in enumerate(groups):
            lines.append("\\midrule" if place == 0 else "\\addlinespace")
            lines += [_write_title(group.title, len(sides))] if group.title else []
            lines += _write_lines(table, group, broken)
        lines += ["\\bottomrule", "\\end{tabular}"]
    if notes:
        more = len(notes) - MOST_NOTES
        told = [*notes[:MOST_NOTES], *([f"And {more} more notes: see table.md"] * (more > 0))]
        words = " ".join(map(_sentence, told))
        lines += ["\\par\\smallskip",
                  f"\\begin{{minipage}}{{\\linewidth}}\\raggedright\\scriptsize {words}",
                  "\\end{minipage}"]  # fmt: skip
    return [*lines, f"\\end{{table{star}}}"]


def _write_title(title: str, columns: int) -> str:
    side = "@{}p{0.98\\linewidth}@{}"
    return f"\\multicolumn{{{columns}}}{{{side}}}{{\\raggedright\\itshape {escape(title)}}} \\\\"


def _write_lines(table: ChosenTable, group: Group, broken: dict[int, float]) -> Iterator[str]:
    texts = list(zip(*table.lines, strict=True))
    places = [0 if c.left else _count_places(texts[i]) for i, c in enumerate(table.columns)]
    for line in group.lines:
        cells = []
        for i, text in enumerate(line):
            if i in broken:
                cells.append(f"\\raggedright {_escape_broken(text)}")
                continue
            pad = _pad(text, places[i])
            cells.append(_write_text(text) + (f"\\phantom{{{pad}}}" if pad else ""))
        yield _join(cells)


def _count_places(texts: Sequence[str]) -> int:
    """The most digits behind the point of a column's plain numbers."""
    return max((len(t.partition(".")[2]) for t in texts if _PLAIN.fullmatch(t)), default=0)


def _pad(text: str, places: int) -> str:
    """What a number lacks, so that its point stands below that of the others."""
    if not _PLAIN.fullmatch(text):
        return ""
    lacks = places - len(text.partition(".")[2])
    return "." * bool(lacks and "." not in text) + "0" * lacks


def _write_head(head: str) -> str:
    words = [_SYMBOLS.get(word, escape(word)) for word in _shorten(head).split(" ")]
    return " ".join(words).replace("5-95 ", "5--95")


def _write_text(text: str) -> str:
    """A cell: ``1.2e-5`` becomes a power of ten, a minus sign is one, a range has a dash."""
    power = _POWER.fullmatch(text)
    if power:
        sign, digits, exponent = power.groups()
        return f"${sign}{digits} \\cdot 10^{{{exponent}}}$"
    if _PLAIN.fullmatch(text) and text.startswith("-"):
        return f"$-${text[1:]}"
    low, dots, high = text.partition(" .. ")
    if dots:
        return f"{_write_text(low)}--{_write_text(high)}"
    value, sign, error = text.partition(" +- ")
    if sign:
        return f"{_write_text(value)} $\\pm$ {_write_text(error)}"
    place = _PLACE.fullmatch(text)
    if place:
        return f"{_SYMBOLS[place[1]]} {_write_text(place[2])}"
    return "--" if text == "-" else escape(text)


def escape(text: str) -> str:
    """Text as LaTeX prints it."""
    return "".join(_ESCAPES.get(mark, mark) for mark in text)


def _escape_broken(text: str) -> str:
    """Escaped text that may be broken over lines wherever ``_cut`` says."""
    return " ".join(
        "\\allowbreak{}".join(escape(piece) for piece in _cut(word)) for word in text.split()
    )


def _sentence(line: str) -> str:
    words = line.replace(" | ", ", ").rstrip(".")
    first = words.partition(" ")[0]
    if first.isalpha() or first.rstrip(":").isalpha():
        words = words[0].upper() + words[1:]
    return " ".join(_escape_broken(w) if len(w) > _LONG else escape(w) for w in words.split()) + "."


def _join(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
