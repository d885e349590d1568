"""`tandem policy page` under broken and hostile requests: each is refused or closed, nothing is written, the server goes on.

    python3 tests/end_to_end/page_attacks_test.py build/tandem
"""

import json
import os
import pathlib
import random
import re
import socket
import sys
import tempfile
import unittest

from policy_page import Page, write_project

POSTS = {  # bodies that change nothing: a device or a revision is unknown, there is nothing to undo
    "match": [{"at": "**", "op": "Gelu", "min": "1KiB", "after": "token.**", "before": "head.**"}],
    "edit": [{"revision": 1, "place": {"items": [1], "set": {"on": "moon"}}},
             {"revision": 1, "rule": {"at": "**", "filters": {"op": "Add"}, "set": {"run": "moon"}, "clear": ["acts"], "remove": False}},
             {"revision": 1, "add": '{ at = "**", on = "moon" }'}, {"revision": 1, "proposed": [0]}],
    "explain": [{"item": 1}, {"name": "token"}],
    "undo": [{"revision": 1}],
    "redo": [{"revision": 1}],
    "save": [{"revision": 0, "over": ""}],
    "reload": [{"revision": 0}],
    "auto": [{"budgets": {"moon": "1MiB"}, "keep_rules": True, "tries": 1}],
    "auto/stop": [{}],
}
LOOKS = ("match", "explain", "auto", "auto/stop")  # what they take changes no policy
WRONG = [None, True, 0, -1, 1 << 31, 1 << 63, -(1 << 63), (1 << 64) - 1, 1e308, -0.0, 0.5, "", "x", "\0", "\ud7ff\U0010ffff", [], [None], [[]], [1, "x"],
         {}, {"": ""}, {"x": {"y": None}}, [[[[[]]]]], "${HOME}", "../../policy.toml"]


class Attacks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.text = write_project(cls.folder)
        cls.page = Page(PROGRAM, cls.folder)

    @classmethod
    def tearDownClass(cls):
        code = cls.page.end()
        cls.place.cleanup()
        if code not in (0, -15, 143):
            raise AssertionError(f"the program ended with {code}")

    def tearDown(self):
        self.assertIsNone(self.page.process.poll(), "the program has ended")
        state = self.page.get("/api/state")
        self.assertEqual((state["text"], state["revision"], state["file"]["changed_on_disk"]), (self.text, 1, False))
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir() if path.name != "gpt.onnx"}, {"policy.toml": self.text.encode()})

    def send(self, request, ends=True):
        """The answer's bytes; `ends`: the client closes its side after the request."""
        with socket.create_connection(("127.0.0.1", self.page.port), timeout=20) as connection:
            answer = b""
            try:
                connection.sendall(request)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                while more := connection.recv(65536):
                    answer += more
            except ConnectionError:
                pass
        return answer

    def refused(self, request, ends=True):
        answer = self.send(request, ends)
        if answer:
            self.assertRegex(answer.split(b"\r\n")[0], rb"^HTTP/1\.1 4\d\d ", request[:200])

    def head(self, method, path, *more, without=()):
        lines = {name: f"{name}: {value}" for name, value in self.page.headers(method).items() if name not in without}
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines.values(), *more, "", ""]).encode()

    def post(self, path, body):
        return self.head("POST", f"/api/{path}", f"Content-Length: {len(body)}") + body

    def status(self, path, body):
        return int(self.send(self.post(path, body)).split(b" ")[1])

    def test_random_bytes(self):
        chance = random.Random(1)
        for _ in range(300):
            self.refused(chance.randbytes(chance.choice((1, 3, 60, 2000))))
        valid = self.head("GET", "/api/file")
        for _ in range(500):
            broken = bytearray(valid)
            for _ in range(chance.randrange(1, 4)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            answer = self.send(bytes(broken[:chance.choice((len(broken), chance.randrange(len(broken))))]))
            self.assertTrue(answer == b"" or re.match(rb"HTTP/1\.1 [24]\d\d ", answer), (bytes(broken), answer[:100]))

    def test_heads_that_are_too_long_or_odd(self):
        start = f"GET /api/file HTTP/1.1\r\nHost: 127.0.0.1:{self.page.port}\r\n".encode()
        for more in (b"X: " + b"a" * 10_000_000, b"X: y\r\n" * 100_000, b"a" * 100_000 + b": y\r\n\r\n", b": y\r\n\r\n", b"X y\r\n\r\n", b"X : y\r\n\r\n",
                     b" folded\r\n\r\n", b"X: a\r\n b\r\n\r\n", b"X: \0\r\n\r\n", b"X: a\rb\r\n\r\n", b"Host: evil.example\r\n\r\n", b"\n\n", b"\r\r\n\n",
                     b"Range: bytes=0-" + b"9" * 5000 + b"\r\n\r\n", b"Range: bytes=" + b"0-0," * 2000 + b"\r\n\r\n", b"Accept: " + b"a/b;q=1e999," * 500 + b"\r\n\r\n",
                     b"Expect: 100-continue\r\n\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"):
            self.refused(start + more)
        for line in (b"GET  /api/file HTTP/1.1", b"GET /api/file HTTP/1.0", b"GET /api/file", b"get /api/file HTTP/1.1", b"GET api/file HTTP/1.1",
                     b"GET /api/%zz%00%ff HTTP/1.1", b"GET /" + b"%2e%2e/" * 1000 + b" HTTP/1.1", b"GET /?" + b"a=b&" * 100_000 + b" HTTP/1.1",
                     b"CONNECT 127.0.0.1:1 HTTP/1.1", b"PRI * HTTP/2.0", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            self.refused(line + b"\r\n" + start.split(b"\r\n", 1)[1] + b"\r\n")

    def test_lengths_that_are_wrong(self):
        body = b'{"revision": 0}'
        for length in ("-1", "+15", "0x0f", "15, 15", "15\r\nContent-Length: 14", "14\r\nContent-Length: 15", " ", "fifteen", "1e1", "9" * 30, str(1 << 63),
                       str(1 << 64), str((1 << 64) + 15), "1048577"):
            self.refused(self.head("POST", "/api/undo", f"Content-Length: {length}") + body)
        for length in range(len(body)):  # too short: what is left is no JSON
            self.refused(self.head("POST", "/api/undo", f"Content-Length: {length}") + body)
        self.refused(self.head("POST", "/api/undo", f"Content-Length: {len(body) + 9}") + body)
        self.refused(self.head("POST", "/api/undo") + body)
        self.refused(self.head("GET", "/api/nothing", f"Content-Length: {len(body)}") + body)

    def test_chunks_that_are_broken(self):
        head = self.head("POST", "/api/undo", "Transfer-Encoding: chunked")
        for chunks in (b"", b"\r\n", b"f\r\n", b"g\r\n", b"-1\r\n{}", b"f" * 40 + b"\r\n", b"7fffffffffffffff\r\n{}", b"ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
                       b"2;x=" + b"y" * 100_000 + b"\r\n{}\r\n0\r\n\r\n", b"2\r\n{}X\r\n0\r\n\r\n", b"2\n{}\n0\n\n", b"0\r\n\r\n", b"2\r\n{}", b"2\r\n{}\r\n0\r\nX: y\r\n",
                       b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n", b"1\r\n{\r\n" * 20_000 + b"0\r\n\r\n", b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 5000 + b"\r\n"):
            self.refused(head + chunks)
        for coding in ("gzip", "chunked, chunked", "identity", "chunked\r\nContent-Length: 2", "Chunked;", "xchunked"):
            self.refused(self.head("POST", "/api/undo", f"Transfer-Encoding: {coding}") + b"2\r\n{}\r\n0\r\n\r\n")
        self.refused(self.head("POST", "/api/undo", "Content-Encoding: gzip", "Content-Length: 3") + b"\x1f\x8b\x08")

    def test_deep_json_and_deep_toml(self):
        depth = 100_000
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")):
            for deep in (opened * depth, opened * depth + b"1" + closed * depth):
                for path in POSTS:
                    self.refused(self.post(path, deep))
                    for key in set().union(*POSTS[path]):
                        self.refused(self.post(path, b'{"%s":%s}' % (key.encode(), deep)))
        for rule in ("[" * depth, '{ at = "**", on = ' * depth, '{ at = ' + "[" * depth + "]" * depth + " }", '{ at = "' + "{a," * depth + '" }',
                     '{ at = "' + "{a," * depth + "}" * depth + '" }', '{ at = "re:' + "(" * depth + ")" * depth + '", on = "cpu" }',
                     '{ at = "re:(a*)*(b*)*(c*)*$", on = "cpu" }', "{" + "a." * depth + "b = 1 }", '{ at = """' + '"' * depth + " }"):
            self.assertIn(self.status("edit", json.dumps({"revision": 1, "add": rule}).encode()), (400, 413, 422), rule[:60])

    def test_wrong_types_everywhere(self):
        for path, bodies in POSTS.items():
            allowed = (200, 400, 404, 409, 422) if path in LOOKS else (400, 409, 422)
            for body in bodies:
                for where in places_in(body):
                    for wrong in WRONG:
                        if wrong is None and where[-2:] == ("set", "on"):
                            continue  # means: as the other rules say
                        text = json.dumps(with_value(body, where, wrong))
                        self.assertIn(self.status(path, text.encode()), allowed, (path, text))
            for text in (b"", b"null", b"[]", b"{", b"{}x", b'{"revision":0,"revision":{}}', b'{"re\xffvision":1}', b'{"revision":1e999}', b"\xef\xbb\xbf{}"):
                self.assertIn(self.status(path, text), (200, *allowed) if path == "auto" else allowed, (path, text))
        for over in WRONG:
            if not isinstance(over, str):
                self.assertEqual(self.status("save", json.dumps({"revision": 1, "over": over}).encode()), 400, over)
        self.page.post("/api/auto/stop")

    def test_thousands_of_requests_do_not_fill_the_memory(self):
        chance = random.Random(2)
        paths = ["/", "/api/state", "/api/model", "/api/file", "/api/plan", "/api/nothing", "/api/timeline", *(f"/api/{path}" for path in POSTS)]
        before = 0
        for i in range(2000):
            if i == 500:
                before = self.resident()
            method = chance.choice(("GET", "GET", "POST", "PUT", "HEAD", "OPTIONS"))
            path = chance.choice(paths)
            bodies = POSTS.get(path.removeprefix("/api/"), [{}])
            body = json.dumps(chance.choice(bodies)).encode() if method == "POST" else b""
            without = chance.sample(("Host", "X-Tandem-Token", "Origin", "Sec-Fetch-Site"), chance.choice((0, 0, 1)))
            request = self.head(method, path, f"Content-Length: {len(body)}", without=without) + body
            answer = self.send(request, ends=chance.random() < 0.5)
            self.assertTrue(answer == b"" or re.match(rb"HTTP/1\.1 [24]\d\d ", answer), (request, answer[:200]))
        self.assertLess(self.resident() - before, 24 << 20)

    def resident(self):
        """Bytes; with a sanitizer, memory that was freed is held back for some time, too."""
        status = pathlib.Path(f"/proc/{self.page.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) << 10


def places_in(body, before=()):
    """Paths of keys and indices to each value of a body."""
    entries = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, value in entries:
        yield (*before, key)
        yield from places_in(value, (*before, key))


def with_value(body, where, value):
    copy = json.loads(json.dumps(body))
    inside = copy
    for key in where[:-1]:
        inside = inside[key]
    inside[where[-1]] = value
    return copy


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
