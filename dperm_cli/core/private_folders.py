"""Find folders for what is kept between runs, as machine code of numba, and read it with care.

Numba loads its files as code. So they lie where nobody but the user can write: a folder that
another user may change is not used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dperm_cli.core.package_paths import cache_dir
from dperm_cli.core.system_calls import open_to_read, user_number

_NUMBA, _MATPLOTLIB = "NUMBA_CACHE_DIR", "MPLCONFIGDIR"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def settle_numba(package: Path) -> bool:
    """Say where numba keeps machine code, before it is imported: it asks the environment once.

    That is ``NUMBA_CACHE_DIR`` where it is set, else beside the code, else in dperm's cache folder,
    else in a temporary folder of this user.

    Args:
        package: The folder of the code that is compiled.

    Returns:
        Whether there is a folder; without one, nothing may be kept.
    """
    given = os.environ.pop(_NUMBA, None)
    folder = _use(Path(given)) if given else None
    if folder is None and _is_as_closed_as_its_code(package):
        return True  # numba's own choice
    folder = folder or find_private("numba")
    if folder is not None:
        os.environ[_NUMBA] = str(folder)
        if "numba" in sys.modules:  # it has been asked already
            sys.modules["numba"].config.CACHE_DIR = str(folder)
    return folder is not None


@cache
def settle_matplotlib() -> None:
    """Have matplotlib keep its list of fonts where it can, before it is imported.

    By itself it makes the list anew in every run where its folder in the home cannot be written.
    """
    home = Path(os.path.expanduser("~"))
    if _MATPLOTLIB not in os.environ and not os.access(home, os.W_OK):
        folder = find_private("matplotlib")
        if folder is not None:
            os.environ[_MATPLOTLIB] = str(folder)


def find_private(name: str) -> Path | None:
    """A folder of this name that only this user can write to, made where there is none.

    It lies in the folder of ``cache_dir``, else in a temporary folder; None where neither will do.
    """
    found = (_use(place / name) for place in _list_places())
    return next((folder for folder in found if folder is not None), None)


def read_own(path: Path) -> bytes | None:
    """The bytes of a file of this user's that nobody else can write to; None for any other."""
    with contextlib.suppress(OSError), open(open_to_read(path), "rb") as file:
        about = os.fstat(file.fileno())
        own = about.st_uid == user_number() and not about.st_mode & _OTHERS_WRITE
        if own and stat.S_ISREG(about.st_mode):
            return file.read()
    return None


def _list_places() -> Iterator[Path]:
    given = cache_dir()
    if given is not None:
        yield given
    home = Path(os.path.expanduser("~"))
    if home.is_absolute():
        yield home / ".cache" / "dperm"
    import tempfile  # 10 ms to import

    with contextlib.suppress(OSError):
        # one name for all runs, so that what was compiled is found again
        yield Path(tempfile.gettempdir()) / f"dperm-{user_number()}"


def _use(folder: Path) -> Path | None:
    """Where the folder really lies, if it is private and can be written to."""
    with contextlib.suppress(OSError, RuntimeError):
        for made in (folder.parent, folder):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = folder.resolve(strict=True)
        if _is_private(real) and _can_write(real):
            return real
    return None


def _is_private(folder: Path) -> bool:
    """Whether nobody but this user and root can change the folder, or put another in its place."""
    about = folder.stat()
    if about.st_uid != user_number() or about.st_mode & _OTHERS_WRITE:
        return False
    for above in folder.parents:
        about = above.stat()
        # in a sticky folder such as /tmp only owners rename
        open_to_others = about.st_mode & _OTHERS_WRITE and not about.st_mode & stat.S_ISVTX
        if about.st_uid not in (0, user_number()) or open_to_others:
            return False
    return True


def _is_as_closed_as_its_code(package: Path) -> bool:
    """Whether machine code can be kept beside its source, by nobody who cannot change that."""
    beside = package / "__pycache__"
    with contextlib.suppress(OSError):
        beside.mkdir(exist_ok=True)
        source, kept = package.stat(), beside.lstat()
        owners, bits = (0, user_number(), source.st_uid), kept.st_mode & ~source.st_mode
        if stat.S_ISDIR(kept.st_mode) and kept.st_uid in owners and not bits & _OTHERS_WRITE:
            return _can_write(beside)
    return False


def _can_write(folder: Path) -> bool:
    import tempfile

    with contextlib.suppress(OSError):
        tempfile.TemporaryFile(dir=folder).close()
        return True
    return False
