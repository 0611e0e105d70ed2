"""Models from a hub (huggingface.co): pulled by name into the cache that Hugging Face's own library uses.

    path = rlx.hub.pull("org/name")            # the folder of a model
    path = rlx.hub.pull("org/name:Q4_K_M")     # a GGUF file
    model = rlx.models.load("org/name")        # the same: pulled when the cache does not have it

docs/hub.md describes names, the cache, the variables (HF_TOKEN, HF_ENDPOINT, ...) and work without a network.
"""

import http.client
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

from . import _rlx
from ._names import accept_names as _accept_names

__all__ = ["cached", "find", "pull"]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def _reason(error):
    reason = getattr(error, "reason", None)
    return f"{type(error).__name__}: {reason if reason is not None else error}"


def _get(url, headers, seconds, begin, body):
    """One GET, without redirects. Returns "", or why no whole answer came."""
    request = urllib.request.Request(url, headers={"User-Agent": "rlx", **headers})
    try:
        reply = urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds)
    except urllib.error.HTTPError as e:  # an answer with another status than 2xx
        reply = e
    except (OSError, http.client.HTTPException) as e:
        return _reason(e)
    with reply:
        location = reply.headers.get("Location")
        fields = {name.lower(): value for name, value in reply.headers.items()}
        begin(reply.status, urllib.parse.urljoin(url, location) if location else "", fields)
        while True:
            try:
                piece = reply.read(1 << 18)
            except (OSError, http.client.HTTPException) as e:
                return _reason(e)
            if not piece or not body(piece):
                return ""


def _say(text):
    print(f"rlx: {text}", file=sys.stderr)


def pull(name, *, verify=False, retries=8, note=None, progress=None):
    """Downloads a model into the cache, or what it lacks of it, and returns its path.

    name: "org/name" for the folder of a model; "org/name:FILE" for a file, or for a type of its GGUF files ("Q4_K_M");
        "org/name@REVISION" for a branch, a tag or a commit
    verify: compares the checksums of files that are in the cache too
    retries: attempts in a row that may fail
    note: a function that is called with messages for the user; None: they are printed to the standard error
    progress: a function that is called with the number of bytes that are there, and of all
    """
    return _rlx.pull_model(name, _get, verify, retries, note or _say, progress)


def cached(name):
    """The path of a model in the cache, or None if not all of it is there. Asks no server."""
    return _rlx.cached_model(name)


def find(path, *, note=None, progress=None):
    """The path of a model that a user names: `path` itself if it exists or cannot be a name; else the model of this
    name in the cache; else it is pulled. rlx.models.load, SentenceEncoder and Reranker call it.
    """
    if not isinstance(path, str) or not path.isprintable() or os.path.exists(path):
        return path
    return _rlx.find_model(path, _get, note or _say, progress)


_accept_names(globals())
