"""Draw the pictures of README and docs again: each is made by a command of dperm.

    python -m tests.draw_pictures [KEPT] [NAME.png ...]

Without names all of them. KEPT is a folder of studies, each called as its picture: those that are
there are drawn from their records (an experiment at full size takes minutes), others are run. Each
picture carries the command that made its records.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.draw_gallery import call

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 1380  # pixels: 6.9 inches at 200 dots
COMMANDS: dict[str, tuple[str, ...]] = {
    "first_run.png": (
        "run", "-m", "mechanism=noisy_gd,noisy_sgd", "calibration=tight,paper",
        "epsilon=0.1,0.3,1,3,10", "trials=20",
    ),
    "describe.png": ("describe", "dataset=digits", "loss=hinge", "epsilon=[0.1,1,10]"),
    "bst14_table1.png": ("reproduce", "bst14_table1", "size=full"),
    "bst14_huberization.png": ("reproduce", "bst14_huberization", "size=full"),
    "djw12_rates.png": ("reproduce", "djw12_rates", "size=full"),
}  # fmt: skip


def draw(name: str, kept: Path, to: Path = DOCS) -> Path:
    """Draw one picture; the file."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    words, folder = COMMANDS[name], kept / name.removesuffix(".png")
    if (folder / "records").is_dir():
        call("report", str(folder), "html=false")
    else:
        call(*words, f"out={folder}")
    (figure,) = sorted(folder.glob("*.png"))
    said = PngInfo()
    said.add_text("Description", " ".join(("dperm", *words)))
    with Image.open(figure) as drawn:
        height = round(drawn.height * WIDTH / drawn.width)
        small = drawn.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(256).save(to / name, pnginfo=said, optimize=True)
    return to / name


def main(arguments: Sequence[str]) -> None:
    folders = [word for word in arguments if not word.endswith(".png")]
    names = [word for word in arguments if word.endswith(".png")] or list(COMMANDS)
    if len(folders) > 1 or not set(names) <= set(COMMANDS):
        raise SystemExit(__doc__)
    for name in names:
        print(draw(name, Path(folders[0] if folders else "outputs/pictures").resolve()))


if __name__ == "__main__":
    main(sys.argv[1:])
