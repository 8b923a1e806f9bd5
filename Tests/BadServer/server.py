#!/usr/bin/env python3
"""A file server that misbehaves: /BEHAVIOUR/FILE serves FILE of the folder given. Prints its port; ends with its input.

Every behaviour but `plain` fails at first, some for ever. Requests are logged as lines of "BEHAVIOUR METHOD Range".
"""

import http.server
import os
import sys
import threading
import time

folder, log_path = sys.argv[1], sys.argv[2]
counts = {}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        _, behaviour, name = self.path.split("/", 2)
        with lock:
            self.number = counts[self.path] = counts.get(self.path, 0) + 1
            with open(log_path, "a") as log:
                log.write(f"{behaviour} {self.headers.get('Range', '-')}\n")
        with open(os.path.join(folder, os.path.basename(name)), "rb") as file:
            self.content = file.read()
        self.tag = '"one"'
        try:
            getattr(self, behaviour)()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def start(self):
        """The first byte that is wanted, by the rules of ranges."""
        wanted = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if not wanted or (condition and condition != self.tag):
            return 0
        return int(wanted.split("=")[1].split("-")[0])

    def head(self, start, length=None, **more):
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(self.content) - start if length is None else length))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if self.tag:
            self.send_header("ETag", self.tag)
        for key, value in more.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()

    def cut(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.close()

    def plain(self):
        start = self.start()
        if start >= len(self.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(self.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.head(start)
        self.wfile.write(self.content[start:])

    def drop(self):
        """A quarter of the whole at a time, then the line breaks."""
        start = self.start()
        self.head(start)
        self.wfile.write(self.content[start : start + len(self.content) // 4 + 1])
        self.cut()

    def stall(self):
        """Half, then nothing, twice."""
        if self.number > 2:
            return self.plain()
        start = self.start()
        self.head(start)
        self.wfile.write(self.content[start : start + len(self.content) // 3])
        self.wfile.flush()
        time.sleep(8)
        self.cut()

    def dead(self):
        time.sleep(30)

    def short(self):
        """Says that it is all, and it is half."""
        self.head(0, len(self.content) // 2)
        self.wfile.write(self.content[: len(self.content) // 2])

    def long(self):
        """Says that there is more than there is."""
        self.head(0, len(self.content) + 1000)
        self.wfile.write(self.content)
        self.cut()

    def endless(self):
        """Says nothing of its length, and does not end."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 65536)

    def chunked(self):
        """No length at all."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(self.content), 10000):
            part = self.content[at : at + 10000]
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def noranges(self):
        """Breaks twice, and always begins anew."""
        self.head(0)
        if self.number > 2:
            self.wfile.write(self.content)
        else:
            self.wfile.write(self.content[: len(self.content) // 2])
            self.cut()

    def html(self):
        page = b"<html><body>Please accept our terms.</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def missing(self):
        self.send_error(404)

    def busy(self):
        """Too many requests, then down, then well."""
        if self.number > 2:
            return self.plain()
        self.send_error(429 if self.number == 1 else 503)

    def redirect(self):
        self.send_response(302)
        self.send_header("Location", self.path.replace("/redirect/", "/drop/"))
        self.send_header("ETag", '"of the redirect"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def loop(self):
        self.send_response(302)
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def elsewhere(self):
        self.send_response(302)
        self.send_header("Location", "file:///etc/passwd")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def change(self, obeys=True):
        """Breaks in the middle of another content; what follows is the right one under a new tag."""
        if self.number == 1:
            self.content = bytes(byte ^ 0xFF for byte in self.content)
            self.head(0)
            self.wfile.write(self.content[: len(self.content) // 2])
            return self.cut()
        self.tag = '"two"'
        if obeys:
            return self.plain()
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        self.head(start)
        self.wfile.write(self.content[start:])

    def rude(self):
        """Changes, and ignores the condition of the request."""
        self.change(obeys=False)

    def sly(self):
        """As `rude`, and without a tag: only a digest can tell."""
        self.tag = None
        tagless, self.tag = self.number, None
        if tagless == 1:
            self.content = bytes(byte ^ 0xFF for byte in self.content)
            self.head(0)
            self.wfile.write(self.content[: len(self.content) // 2])
            return self.cut()
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        self.head(start)
        self.wfile.write(self.content[start:])

    def wrong(self):
        """The right length, and a wrong byte."""
        self.content = self.content[:-1] + bytes([self.content[-1] ^ 1])
        self.plain()

    def slow(self):
        """A hundredth every 10 ms."""
        start = self.start()
        self.head(start)
        step = len(self.content) // 100 + 1
        for at in range(start, len(self.content), step):
            self.wfile.write(self.content[at : at + step])
            self.wfile.flush()
            time.sleep(0.01)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
