"""An HTTP server of packs that behaves and misbehaves by the path asked for; runs in a pod, with the standard library.

``/plain/NAME`` sends a file; ``/slow/SECONDS/NAME`` takes so long about it; ``/truncated/NAME`` breaks off in the
middle; ``/hanging/NAME`` sends nothing after the headers; ``/changed/NAME`` sends a file of the same length with other
bytes. ``/once/TAG/…`` sends the file rightly the first time, and behaves as the rest of the path says from then on:
the TAG is the asker's, so that each test has a first time of its own. With a certificate and its key as second and
third argument it answers https as well.
"""

import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIECES = 20  # of a slow file: often enough that no reader takes the connection for dead
HANGING_S = 3600

folder = Path(sys.argv[1])
asked: set[str] = set()
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_GET(self) -> None:
        """Send a file as the path says."""
        kind, *rest = self.path.strip("/").split("/")
        if kind == "once":
            _, kind, *rest = rest
            with lock:
                if self.path not in asked:
                    asked.add(self.path)
                    kind = "plain"
        path = folder / rest[-1]
        if kind == "missing" or not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        if kind == "changed":
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if kind == "slow":
            size = len(body) // PIECES + 1
            for start in range(0, len(body), size):
                time.sleep(float(rest[0]) / PIECES)
                self.wfile.write(body[start : start + size])
        elif kind == "truncated":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif kind == "hanging":
            time.sleep(HANGING_S)
        else:
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A server for crowds."""

    request_queue_size = 128


if __name__ == "__main__":
    if certificate := sys.argv[2:]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        secure = Server(("0.0.0.0", 8443), Handler)
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        threading.Thread(target=secure.serve_forever, daemon=True).start()
    Server(("0.0.0.0", 8080), Handler).serve_forever()  # a pod's address is not known before
