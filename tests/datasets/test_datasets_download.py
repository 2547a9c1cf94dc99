"""Downloads from a server on this machine: good, wrong, absent, broken off, resumed, refused."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import re
import socket
import threading
from typing import ClassVar

import pytest

from dperm_cli.core import progress, registry
from dperm_cli.core.errors import InputError
from dperm_cli.datasets.shared import data_commands, download, published_file

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``files``; ``cut`` breaks every answer off after so many bytes."""

    files: ClassVar[dict[str, bytes]] = {}
    cut: ClassVar[int | None] = None
    ranges: ClassVar[bool] = True
    etag: ClassVar[str] = '"one"'
    redirect: ClassVar[str] = ""
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self):
        Handler.seen.append((self.path, self.headers.get("Range")))
        if self.redirect:
            self.send_response(302)
            self.send_header("Location", self.redirect)
            self.end_headers()
            return
        body = self.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        start = self._start()
        if start >= len(body) > 0:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        if self.etag:
            self.send_header("ETag", self.etag)
        self.end_headers()
        rest = body[start:]
        self.wfile.write(rest if self.cut is None else rest[: self.cut])

    def _start(self) -> int:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        fresh = self.headers.get("If-Range") == self.etag
        return int(asked.group(1)) if asked and self.ranges and fresh else 0

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """The address of a server on this machine, with clean settings."""
    for key, value in {"files": {}, "cut": None, "ranges": True, "etag": '"one"', "redirect": "",
                       "seen": []}.items():  # fmt: skip
        monkeypatch.setattr(Handler, key, value)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("DPERM_OFFLINE", "DPERM_MIRROR", "DPERM_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def failed(url, target, **more):
    with pytest.raises(InputError) as caught:
        download.download("toy", url, target, **more)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("dataset=toy: http")
    assert not target.exists()
    return message


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_good_download_is_complete_and_reported(server, tmp_path):
    Handler.files["/f"] = CONTENT
    heard = []
    target = tmp_path / "deep" / "f"
    with progress.listen(lambda *words: heard.append(words)):
        done = download.download("toy", f"{server}/f", target, sha256=("0" * 64, SHA256))
    assert done == target
    assert target.read_bytes() == CONTENT
    assert names(target.parent) == ["f"]
    assert heard[-1] == ("fetching f", len(CONTENT), len(CONTENT))


def test_a_wrong_hash_is_refused_and_removed(server, tmp_path):
    Handler.files["/f"] = CONTENT + b"!"
    message = failed(f"{server}/f", tmp_path / "f", sha256=(SHA256,))
    assert SHA256 in message
    assert names(tmp_path) == []


def test_not_found(server, tmp_path):
    assert "cannot be fetched (HTTP 404" in failed(f"{server}/f", tmp_path / "f")
    assert names(tmp_path) == []


def test_a_broken_transfer_is_resumed(server, tmp_path, monkeypatch):
    Handler.files["/f"] = CONTENT
    monkeypatch.setattr(Handler, "cut", 200_000)
    message = failed(f"{server}/f", tmp_path / "f", sha256=(SHA256,))
    assert f"broke after 200000 of {len(CONTENT)} bytes; run the same command" in message
    assert (tmp_path / "f.part").read_bytes() == CONTENT[:200_000]
    failed(f"{server}/f", tmp_path / "f", sha256=(SHA256,))
    monkeypatch.setattr(Handler, "cut", None)
    download.download("toy", f"{server}/f", tmp_path / "f", sha256=(SHA256,))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [asked for _, asked in Handler.seen] == [None, "bytes=200000-", "bytes=400000-"]
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("change", ["etag", "ranges", "no tag", "longer part"])
def test_a_part_of_another_file_is_never_continued(change, server, tmp_path, monkeypatch):
    Handler.files["/f"] = CONTENT
    monkeypatch.setattr(Handler, "cut", 100_000)
    if change == "no tag":
        monkeypatch.setattr(Handler, "etag", "")
    failed(f"{server}/f", tmp_path / "f")
    monkeypatch.setattr(Handler, "cut", None)
    Handler.files["/f"] = other = CONTENT[::-1]
    if change == "etag":
        monkeypatch.setattr(Handler, "etag", '"two"')
    elif change == "ranges":
        monkeypatch.setattr(Handler, "ranges", False)
    elif change == "longer part":
        (tmp_path / "f.part").write_bytes(b"x" * (len(CONTENT) + 5))
    download.download("toy", f"{server}/f", tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == other


def test_nobody_listens(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = failed(f"http://127.0.0.1:{port}/f", tmp_path / "f")
    assert "refused" in message.lower()
    assert names(tmp_path) == []


def test_no_other_protocol_and_no_way_out_by_redirect(server, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("local")
    with pytest.raises(InputError, match="cannot be fetched"):
        download.download("toy", secret.as_uri(), tmp_path / "f")
    for address in (secret.as_uri(), "ftp://127.0.0.1/f"):
        monkeypatch.setattr(Handler, "redirect", address)
        failed(f"{server}/f", tmp_path / "f")
    assert names(tmp_path) == ["secret"]


def test_a_reply_beyond_the_declared_size_is_refused(server, tmp_path):
    Handler.files["/f"] = CONTENT
    assert "has more than the declared limit of 1000 bytes" in failed(
        f"{server}/f", tmp_path / "f", limit=1000
    )
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_written(server, tmp_path):
    Handler.files["/f"] = CONTENT
    (tmp_path / "file").write_text("")
    failed(f"{server}/f", tmp_path / "file" / "f")


# --- the verb


@pytest.fixture
def toy(server, tmp_path, monkeypatch):
    """real_sim, as if it had four records and lived on this machine."""
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    kind = registry.load("dataset", "real_sim")
    small = dataclasses.replace(
        kind.train, n=2, p=3, url=f"{server}/real-sim.bz2", labels={-1: 1, 1: 1}
    )
    monkeypatch.setattr(kind, "train", small)
    return kind


def test_fetch_checks_the_records_and_then_they_load(toy, tmp_path):
    Handler.files["/real-sim.bz2"] = b"1 1:1\n-1 3:2\n"
    (path,) = data_commands.fetch("real_sim")
    assert path == tmp_path / "cache" / "downloads" / "real-sim.bz2"
    assert toy(test_fraction=0).load().n == 2
    assert data_commands.path("real_sim") == path
    Handler.files.clear()
    assert data_commands.fetch("real_sim") == [path]
    assert len(Handler.seen) == 1


def test_fetch_removes_what_is_not_the_published_file(toy, tmp_path):
    Handler.files["/real-sim.bz2"] = b"1 1:1\n1 3:2\n"
    with pytest.raises(InputError, match=r"dataset=real_sim: .* is not the published real-sim"):
        data_commands.fetch("real_sim")
    assert names(tmp_path / "cache" / "downloads") == []


def test_fetch_respects_the_offline_switch_and_a_mirror(toy, server, tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_OFFLINE", "1")
    with pytest.raises(InputError, match="DPERM_OFFLINE forbids a download: put real-sim"):
        data_commands.fetch("real_sim")
    assert Handler.seen == []
    monkeypatch.setenv("DPERM_OFFLINE", "0")
    monkeypatch.setenv("DPERM_MIRROR", f"{server}/copies/")
    Handler.files["/copies/real-sim.bz2"] = b"-1 3:2\n1 1:1\n"
    assert len(data_commands.fetch("real_sim")) == 1
    assert Handler.seen == [("/copies/real-sim.bz2", None)]


def test_fetch_of_what_cannot_be_fetched():
    with pytest.raises(InputError, match="is not a set that is downloaded"):
        data_commands.fetch("digits")
    with pytest.raises(InputError, match="has no address to download from"):
        data_commands.fetch("reuters_moneyfx")
    assert not published_file.offline()
