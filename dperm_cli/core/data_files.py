"""Find the user's data files: in the working directory, then in the data folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dperm_cli.core.errors import InputError


def locate(key: str, name: str, data_dir: Path | None, folders: bool = False) -> Path:
    """A regular file, looked for from the working directory and then in the data folder.

    Args:
        key: What the name is the value of.
        name: As it was typed.
        data_dir: The data folder.
        folders: Whether a folder will do too.

    Raises:
        InputError: There is none.
    """
    folder = data_folder(data_dir)
    places = [Path.cwd()] + ([] if folder is None else [folder])
    for place in places:
        path = place / os.path.expanduser(name)
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InputError(key, name, f"cannot be read ({error.strerror})") from None
        if stat.S_ISDIR(mode) and folders:
            return path
        if stat.S_ISDIR(mode):
            raise InputError(key, name, "is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise InputError(key, name, "is not a regular file")
        return path
    looked = " and ".join(str(place) for place in places)
    raise InputError(key, name, f"no such file (looked in {looked})")


def data_folder(data_dir: Path | None = None) -> Path | None:
    """The folder that the user keeps data sets in: the argument, or what DPERM_DATA_DIR names."""
    if data_dir is not None:
        return Path(data_dir)
    found = os.environ.get("DPERM_DATA_DIR")
    return Path(found).expanduser() if found else None
