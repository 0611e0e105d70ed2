"""A hub on the loopback for tests: the files of one repository, and faults."""

import contextlib
import hashlib
import http.server
import json
import os
import threading

REPO = "org/name"
COMMIT = "0" * 39 + "1"
VARIABLES = ["HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "http_proxy", "https_proxy", "all_proxy"]


class Hub:
    """files: name -> bytes; large: the names that another host has (127.0.0.2 instead of 127.0.0.1).

    fault: a function of (path, count) whose result changes the answer: a dict with status, headers, body, cut (the
    number of bytes after which the connection ends) or silent; None: the usual answer
    """

    def __init__(self, files, large=()):
        self.files, self.large, self.fault = dict(files), set(large), None
        self.requests = []  # (host, path, headers in lower case)
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                hub.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.stopped = threading.Event()
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def listing(self):
        def entry(name, content):
            git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            out = {"rfilename": name, "size": len(content), "blobId": git}
            if name in self.large:
                out["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 100}
            return out

        return {"id": REPO, "sha": COMMIT, "siblings": [entry(*f) for f in self.files.items()]}

    def usual(self, path, headers):
        if path.split("?")[0] in (f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/{COMMIT}"):
            return dict(status=200, headers={}, body=json.dumps(self.listing()).encode())
        for start in (f"/{REPO}/resolve/{COMMIT}/", "/large/"):
            name = path.removeprefix(start)
            if name == path or name not in self.files:
                continue
            if start != "/large/" and name in self.large:
                location = f"http://127.0.0.2:{self.port}/large/{name}"
                return dict(status=302, headers={"Location": location}, body=b"elsewhere")
            content, asked = self.files[name], headers.get("range")
            if not asked:
                return dict(status=200, headers={}, body=content)
            first = int(asked.removeprefix("bytes=").rstrip("-"))
            part = {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}
            return dict(status=206, headers=part, body=content[first:])
        return dict(status=404, headers={"X-Error-Code": "RepoNotFound"}, body=b"not found")

    def answer(self, handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append((headers["host"].split(":")[0], handler.path, headers))
        reply = dict(self.usual(handler.path, headers), cut=None, silent=False)
        if self.fault:
            reply.update(self.fault(handler.path, len(self.requests)) or {})
        handler.close_connection = True
        if reply["silent"]:
            self.stopped.wait(30)
            return
        handler.send_response(reply["status"])
        handler.send_header("Content-Length", str(len(reply["body"])))
        for name, value in reply["headers"].items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(reply["body"][: reply["cut"]])


@contextlib.contextmanager
def serving(files, large, home, monkeypatch):
    """A Hub that the variables of the environment name, with the cache in `home`."""
    hub = Hub(files, large)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", os.fspath(home))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_HUB_DOWNLOAD_TIMEOUT", "5")
    try:
        yield hub
    finally:
        hub.close()
