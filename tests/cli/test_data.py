"""``dperm data list | path | fetch | verify``."""

from __future__ import annotations

import http.server
import threading

import pytest


@pytest.fixture(autouse=True)
def no_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("DPERM_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("DPERM_DATA_DIR", "DPERM_OFFLINE", "DPERM_MIRROR", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_list_names_every_set_and_how_to_get_it(dperm):
    done = dperm("data", "list")
    assert (done.code, done.err) == (0, "")
    lines = {line.split()[0]: line for line in done.out.splitlines()}
    assert "embedded" in lines["digits"]
    assert "581012" in lines["covtype"]
    assert "not here (dperm data fetch)" in lines["covtype"]
    assert "not here (DPERM_DATA_DIR)" in lines["reuters_moneyfx"]
    assert "multiclass" in lines["mnist"]
    assert len({line.index("where") for line in done.out.splitlines()[:1]}) == 1


def test_help_names_the_verbs(dperm):
    done = dperm("data", "--help")
    for word in ("fetch", "verify", "DPERM_OFFLINE", "DPERM_DATA_DIR"):
        assert word in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fetch",), "needs the name of a data set"),
        (("fetch", "a9a", "digits"), "takes one name"),
        (("fetch", "a9b"), "did you mean 'a9a'"),
        (("fetch", "digits"), "is not a set that is downloaded"),
        (("path", "covtype"), "run `dperm data fetch covtype`"),
        (("fetsh", "a9a"), "did you mean 'fetch'"),
    ],
)
def test_what_cannot_be_done_is_one_line(words, message, dperm):
    done = dperm("data", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_offline_forbids_fetch(dperm, monkeypatch):
    monkeypatch.setenv("DPERM_OFFLINE", "1")
    done = dperm("data", "fetch", "covtype")
    assert done.code == 2
    assert "DPERM_OFFLINE forbids a download" in done.err


def test_fetch_from_a_mirror_reports_on_stderr_and_refuses_a_wrong_file(
    dperm, tmp_path, monkeypatch
):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"1 1:1\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("DPERM_MIRROR", f"http://127.0.0.1:{server.server_port}")
        done = dperm("data", "fetch", "gisette")
        server.shutdown()
    assert (done.code, done.out) == (2, "")
    progress, error = done.err.splitlines()
    assert progress.startswith("fetching gisette_scale.bz2: 0.0 of 0.0 MB")
    assert "is not the published gisette_scale: 1 records; published: 6000" in error
    assert list((tmp_path / "cache" / "downloads").iterdir()) == []


def test_verify_shows_the_classes_of_a_set(dperm):
    done = dperm("data", "verify", "digits", "contrast=classes")
    assert done.code == 0
    assert "0: 178, 1: 182" in done.out
    done = dperm("data", "verify", "median_cloud", "n=50")
    assert done.code == 0


@pytest.mark.parametrize("contents", ["x,label\n0.5,1\n0.1,0\n", "x,label\n0.5,many\n"])
def test_verify_is_labelled_for_the_holder_of_the_data(dperm, tmp_path, contents):
    (tmp_path / "mine.csv").write_text(contents)
    words = ("path=mine.csv", "target=label", "labels={1: 1, 0: -1}", "row_bound=1")
    done = dperm("data", "verify", "csv", *words)
    first, *findings = done.out.splitlines()
    assert first.startswith("For the holder of the data only:")
    assert "do not publish" in first
    assert findings
    assert "for their holder only" in dperm("data", "--help").out
