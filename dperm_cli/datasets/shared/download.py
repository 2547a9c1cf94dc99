"""Download a published file over HTTP: resumable, checked, and in place only when complete."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any

from dperm_cli.core import progress
from dperm_cli.core.digests import hash_file
from dperm_cli.core.errors import InputError

TIMEOUT = 30.0
PIECE = 1 << 16
_KEY = "dataset"


class Broken(Exception):
    """A transfer that ended early; what has arrived is kept."""


class TooLong(Exception):
    """A reply beyond the declared size; nothing of it is kept."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"has more than the declared limit of {limit} bytes")


def download(
    name: str, url: str, target: Path, *, sha256: tuple[str, ...] = (), limit: int = 1 << 30
) -> Path:
    """Bring ``url`` to ``target``; InputError in one line when that fails.

    Bytes are collected in ``target`` + ``.part`` and go on from there after an interruption, if
    the server still offers the same file (If-Range); the rename is atomic. ``sha256`` lists the
    digests of accepted archives (none: any); a file with another one is removed. A reply of more
    than ``limit`` bytes is refused. Only http and https are spoken.
    """
    part = target.with_name(target.name + ".part")
    tag = target.with_name(target.name + ".part.tag")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _transfer(url, part, tag, limit)
        found = hash_file(part)
        if sha256 and found not in sha256:
            part.unlink()
            words = f"{url} has sha256 {found}, published: {' or '.join(sha256)}; it was removed"
            raise InputError(_KEY, name, words)
        os.replace(part, target)
    except Broken as error:
        words = f"{url}: {error}; run the same command again to resume"
        raise InputError(_KEY, name, words) from None
    except TooLong as error:
        part.unlink(missing_ok=True)
        raise InputError(_KEY, name, f"{url} {error}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise InputError(_KEY, name, f"{url} cannot be fetched ({_words(error)})") from None
    finally:
        with contextlib.suppress(OSError):
            if not part.exists():
                tag.unlink(missing_ok=True)
    return target


def _transfer(url: str, part: Path, tag: Path, limit: int) -> None:
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "dperm"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", tag.read_text(encoding="ascii"))
    try:
        reply = _opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416 or not have:
            raise
        # The part is not a beginning of what the server has now.
        part.unlink()
        return _transfer(url, part, tag, limit)
    with reply:
        resumed = reply.status == 206 and _starts_at(reply, have)
        if reply.status == 206 and not resumed:
            raise OSError("the server sent another range than was asked for")
        _remember(reply, tag)
        with open(part, "ab" if resumed else "wb") as file:
            _copy(reply, file, have if resumed else 0, limit)
    return None


def _copy(reply: Any, file: IO[bytes], have: int, limit: int) -> None:
    length = reply.headers.get("Content-Length")
    total = have + int(length) if length is not None else 0
    if max(total, have) > limit:
        raise TooLong(limit)
    label = f"fetching {reply.url.rpartition('/')[2]}"
    while True:
        try:
            piece = reply.read(PIECE)
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"the connection broke after {have} bytes ({_words(error)})") from None
        if not piece:
            break
        have += len(piece)
        if have > limit:
            raise TooLong(limit)
        file.write(piece)
        progress.report(label, have, total)
    if total and have < total:
        raise Broken(f"the connection broke after {have} of {total} bytes")


def _remember(reply: Any, tag: Path) -> None:
    """Keep what names this version of the file; without it nothing can be resumed."""
    etag = reply.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else reply.headers.get("Last-Modified", "")
    with contextlib.suppress(UnicodeEncodeError):
        if validator and re.fullmatch(r"[ -~]+", validator):
            tag.write_text(validator, encoding="ascii")
            return
    tag.unlink(missing_ok=True)


def _starts_at(reply: Any, have: int) -> bool:
    return reply.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _opener() -> urllib.request.OpenerDirector:
    """Speaks http and https alone: no redirect can lead to a local file or to ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor, urllib.request.UnknownHandler,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener


def _words(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    words = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
    return " ".join(str(words).split())[:200]
