"""The server of `tandem policy page` answers its own page and nothing else: each protection has a test.

    python3 tests/end_to_end/page_server_test.py build/tandem
"""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from policy_page import Page, write_project


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.text = write_project(cls.folder)
        cls.page = Page(PROGRAM, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.page.end()
        cls.place.cleanup()

    def refused(self, status, code, *request, **changed):
        got, headers, content = self.page.request(*request, **changed)
        self.assertEqual((got, json.loads(content)["error"]["code"]), (status, code), (request, changed))
        self.assertNotIn(b"devices", content)
        return headers

    def test_the_page_itself_is_answered(self):
        status, headers, content = self.page.request("GET", "/", without=["X-Tandem-Token"])
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/html"))
        self.assertNotIn(self.page.token.encode(), content)
        self.assertEqual(self.page.get("/api/state")["text"], self.text)

    def test_the_host_is_checked_before_all_else(self):
        port = self.page.port
        for name in ("127.0.0.1", "localhost", "[::1]"):
            self.assertEqual(self.page.request("GET", "/api/file", Host=f"{name}:{port}")[0], 200)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"127.0.0.2:{port}",
                     f"0.0.0.0:{port}", f"localhost.:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}.evil.example", f"127.1:{port}", ""):
            for method, path in (("GET", "/"), ("GET", "/api/state"), ("GET", "/nothing"), ("POST", "/api/edit"), ("OPTIONS", "/")):
                self.refused(403, "host", method, path, Host=host)
        # A page that a rebound name serves has a matching origin, or none.
        self.refused(403, "host", "POST", "/api/undo", {"revision": 1}, Host=f"evil.example:{port}", Origin=f"http://evil.example:{port}")
        self.refused(403, "host", "GET", "/", without=["Host"])

    def test_two_hosts_are_refused(self):
        port = self.page.port
        for second in (f"127.0.0.1:{port}", "evil.example"):
            answer = self.raw(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: {second}\r\n\r\n")
            self.assertRegex(answer.split(b"\r\n")[0], rb" 40[03] ")

    def test_the_token_is_needed_for_all_but_the_document(self):
        wrong = "0" * 32 if self.page.token != "0" * 32 else "1" * 32
        for path in ("/api/model", "/api/state", "/api/plan", "/api/file", "/api/auto", "/api/live", "/api/measured", "/api/timeline"):
            self.refused(401, "token", "GET", path, without=["X-Tandem-Token"])
            self.refused(401, "token", "GET", path, X_Tandem_Token=wrong)
        for token in ("", self.page.token[:-1], self.page.token + "0", self.page.token.upper() + " "):
            self.refused(401, "token", "POST", "/api/undo", {"revision": 1}, X_Tandem_Token=token)
        self.refused(401, "token", "GET", f"/api/state?token={self.page.token}", without=["X-Tandem-Token"])
        self.refused(401, "token", "GET", "/api/state", without=["X-Tandem-Token"], Cookie=f"token={self.page.token}")

    def test_tokens_have_128_bits_and_differ(self):
        with Page(PROGRAM, self.folder) as other:
            self.assertNotEqual(other.token, self.page.token)
            self.assertEqual(len(bytes.fromhex(other.token)), 16)
            self.assertEqual(self.page.request("GET", "/api/file", X_Tandem_Token=other.token)[0], 401)

    def test_posts_come_from_the_page_itself(self):
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{self.page.port}", "http://127.0.0.1", f"http://localhost:{self.page.port}", ""):
            self.refused(403, "origin", "POST", "/api/undo", {"revision": 1}, Origin=origin)
        self.refused(403, "origin", "POST", "/api/undo", {"revision": 1}, without=["Origin"])
        for site in ("cross-site", "same-site", "none", ""):
            self.refused(403, "origin", "POST", "/api/undo", {"revision": 1}, Sec_Fetch_Site=site)
        self.refused(403, "origin", "POST", "/api/undo", {"revision": 1}, without=["Sec-Fetch-Site"])
        self.refused(403, "origin", "GET", "/api/state", Sec_Fetch_Site="cross-site")
        self.refused(403, "origin", "GET", "/api/state", Origin="http://evil.example")

    def test_bodies_are_json(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", ""):
            self.refused(415, "media_type", "POST", "/api/undo", {"revision": 1}, Content_Type=kind)
        self.refused(415, "media_type", "POST", "/api/undo", {"revision": 1}, without=["Content-Type"])
        for body in (b"", b"revision=1", b"[1]", b"{", b'"x"', b"\xff\xfe", b"[" * 100_000):
            self.refused(400, "bad_request", "POST", "/api/undo", body)
        for body in ({}, {"revision": "1"}, {"revision": 1.5}, {"revision": 1, "more": 2}):
            self.refused(400, "bad_request", "POST", "/api/undo", body)

    def test_bodies_have_a_limit(self):
        body = json.dumps({"at": "x" * (1 << 20)}).encode()
        self.refused(413, "too_large", "POST", "/api/match", body)
        self.assertEqual(self.page.request("POST", "/api/match", {"at": "x" * 100_000})[0], 200)
        chunked = (f"POST /api/match HTTP/1.1\r\nHost: 127.0.0.1:{self.page.port}\r\nOrigin: {self.page.origin}\r\nSec-Fetch-Site: same-origin\r\n"
                   f"Content-Type: application/json\r\nX-Tandem-Token: {self.page.token}\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
        answer = self.raw(chunked + b"200000\r\n" + b"x" * 0x200000 + b"\r\n0\r\n\r\n")
        self.assertRegex(answer.split(b"\r\n")[0], rb" 4(00|13) ")

    def test_every_answer_has_the_protecting_headers(self):
        for request in (("GET", "/"), ("GET", "/api/state"), ("GET", "/nothing"), ("OPTIONS", "/api/state"), ("POST", "/api/undo")):
            headers = self.page.request(*request)[1]
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual([name for name in headers if name.lower().startswith("access-control")], [])
            self.assertNotIn("Set-Cookie", headers)

    def test_the_policy_names_this_very_script_and_style(self):
        _, headers, content = self.page.request("GET", "/")
        policy = headers["Content-Security-Policy"]
        for tag, source in (("script", "script-src"), ("style", "style-src")):
            text = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>".encode(), content, re.S)[1]
            digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
            self.assertIn(f"{source} 'sha256-{digest}';", policy)
        for word in ("unsafe", "http:", "https:", "data:", "blob:", "*"):
            self.assertNotIn(word, policy)
        self.assertNotRegex(content.decode(), r"<[^>]+ (style|on\w+)=")
        self.assertNotRegex(content.decode(), r"<(link|img|iframe|script[^>]* src|base|form)\b")

    def test_other_methods_are_refused(self):
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"):
            status, headers, _ = self.page.request(method, "/api/state")
            self.assertEqual(status, 405, method)
            self.assertEqual([name for name in headers if name.lower().startswith("access-control")], [])

    def test_there_is_nothing_else(self):
        for path in ("/policy.toml", "/../policy.toml", "/..%2fpolicy.toml", "/%2e%2e/policy.toml", "/api/../../etc/passwd", "//etc/passwd",
                     "/api/", "/api/state/", "/favicon.ico", "/index.html", "/api/statex"):
            self.refused(404, "not_found", "GET", path)
        self.refused(404, "not_found", "POST", "/api/state", {})
        self.refused(404, "not_found", "GET", "/api/edit")

    def test_broken_requests_change_nothing(self):
        port = self.page.port
        for text in ("GET / HTTP/9.9\r\n\r\n", "\0\0\0\0\r\n\r\n", "GET\r\n\r\n", f"GET /{'a' * 20000} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
                     f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n" + "X: y\r\n" * 500 + "\r\n",
                     f"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                     "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"):
            answer = self.raw(text)
            self.assertTrue(answer == b"" or re.match(rb"HTTP/1.1 4\d\d ", answer), answer[:80])
        self.assertEqual(self.page.get("/api/state")["text"], self.text)

    def test_both_loopback_addresses_and_no_other(self):
        mine = {line.split()[1] for name in ("tcp", "tcp6") for line in self.listening(name)}
        hex_port = f"{self.page.port:04X}"
        allowed = {f"0100007F:{hex_port}", f"00000000000000000000000001000000:{hex_port}"}
        self.assertLessEqual(mine, allowed)
        self.assertIn(f"0100007F:{hex_port}", mine)
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") and "00000000000000000000000000000001" in pathlib.Path("/proc/net/if_inet6").read_text():
            self.assertEqual(self.page.request("GET", "/api/file", at="::1", Host=f"[::1]:{self.page.port}")[0], 200)

    def test_no_option_opens_it_to_others(self):
        for option in ("--host", "--bind-address", "--listen"):
            ended = subprocess.run([PROGRAM, "policy", "page", "policy.toml", option, "0.0.0.0"], cwd=self.folder, capture_output=True, text=True, timeout=30)
            self.assertEqual(ended.returncode, 2, ended.stderr)

    def test_four_threads_answer(self):
        status = pathlib.Path(f"/proc/{self.page.process.pid}/task")
        names = len(list(status.iterdir()))
        # Idle connections take a thread each; a fifth one waits, and is answered when one of them is closed.
        idle = [socket.create_connection(("127.0.0.1", self.page.port)) for _ in range(4)]
        for connection in idle:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.3)
        answered = []
        thread = threading.Thread(target=lambda: answered.append(self.page.request("GET", "/api/file")[0]))
        thread.start()
        thread.join(1)
        self.assertEqual(answered, [])
        for connection in idle:
            connection.close()
        thread.join(20)
        self.assertEqual(answered, [200])
        self.assertEqual(len(list(status.iterdir())), names)

    def raw(self, request):
        with socket.create_connection(("127.0.0.1", self.page.port), timeout=40) as connection:
            try:
                connection.sendall(request.encode() if isinstance(request, str) else request)
                answer = b""
                while more := connection.recv(65536):
                    answer += more
            except ConnectionError:
                pass
        return answer

    def listening(self, name):
        """Lines of /proc/net about sockets of the program that listen."""
        folder = pathlib.Path(f"/proc/{self.page.process.pid}/fd")
        sockets = set()
        for link in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # a connection that was closed meanwhile
                if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
                    sockets.add(match[1])
        lines = pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]
        return [line for line in lines if line.split()[3] == "0A" and line.split()[9] in sockets]


class End(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        write_project(self.folder)

    def test_signals_end_it_and_leave_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            page = Page(PROGRAM, self.folder)
            page.get("/api/state")
            page.process.send_signal(number)
            page.process.communicate(timeout=20)
            self.assertEqual(page.process.returncode, 128 + number)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["gpt.onnx", "policy.toml"])

    def test_clients_that_stop_halfway_do_not_delay_the_end(self):
        def hang_up(connection, port):
            """Reads nothing of a long answer."""
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())

        def send_half(connection, port):
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 9\r\n".encode())

        for stall in (send_half, hang_up):
            page = Page(PROGRAM, self.folder)
            page.get("/api/state")
            connections = [socket.socket() for _ in range(3)]
            for connection in connections:
                stall(connection, page.port)
            time.sleep(0.3)
            start = time.monotonic()
            page.process.send_signal(signal.SIGINT)
            page.process.communicate(timeout=40)
            self.assertEqual(page.process.returncode, 128 + signal.SIGINT)
            self.assertLess(time.monotonic() - start, 5, stall.__name__)  # 1 s, and what a busy machine adds
            for connection in connections:
                connection.close()

    def test_it_ends_when_nobody_asks(self):
        start = time.monotonic()
        page = Page(PROGRAM, self.folder, "--idle", "2s")
        time.sleep(1.2)
        page.get("/api/file")
        asked = time.monotonic()
        page.process.wait(20)
        self.assertEqual(page.end(), 0)
        self.assertGreater(time.monotonic() - asked, 1.5)
        self.assertGreater(time.monotonic() - start, 3)

    def test_a_half_request_is_given_up_after_thirty_seconds(self):
        with Page(PROGRAM, self.folder) as page, socket.create_connection(("127.0.0.1", page.port), timeout=60) as connection:
            start = time.monotonic()
            connection.sendall(f"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n".encode())
            while connection.recv(65536):
                pass
            self.assertTrue(25 < time.monotonic() - start < 40, time.monotonic() - start)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
