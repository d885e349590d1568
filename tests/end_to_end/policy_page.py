"""A running `tandem policy page`, and requests to it as its own page sends them."""

import http.client
import json
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

POLICY = """policy = 1
# Two blocks on an accelerator.
devices = { gpu = { use = "emulated:0", memory = "2MiB" } }
rules = [
  { at = "**", on = "gpu" },
  { at = "head.**", on = "cpu" },   # small
]
"""
MODEL = ["--model", "gpt.onnx", "--bind", "batch=2"]


def write_project(folder):
    shutil.copy(ROOT / "tests" / "data" / "exports" / "gpt.torchscript.onnx", folder / "gpt.onnx")
    text = POLICY.replace("head", "token")
    (folder / "policy.toml").write_text(text)
    return text


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body
        self.code = body["error"]["code"]


class Page:
    def __init__(self, program, folder, *words, policy="policy.toml", model=MODEL):
        self.process = subprocess.Popen([program, "policy", "page", policy, *model, *words], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        address = re.fullmatch(r"page: http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})\n", line)
        if not address:
            raise AssertionError(line + self.process.communicate(timeout=20)[1])
        self.at_address(int(address[1]), address[2])

    @classmethod
    def at(cls, port, token):
        """The page of a program that runs already."""
        page = cls.__new__(cls)
        page.process = None
        page.at_address(port, token)
        return page

    def at_address(self, port, token):
        self.port, self.token = port, token
        self.origin = f"http://127.0.0.1:{port}"

    def headers(self, method):
        own = {"Host": f"127.0.0.1:{self.port}", "X-Tandem-Token": self.token}
        if method == "POST":
            own |= {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
        return own

    def request(self, method, path, body=None, without=(), at="127.0.0.1", **changed):
        """Status, headers and body. `changed`: headers with _ for -; `without`: headers that are left out."""
        headers = self.headers(method) | {name.replace("_", "-"): value for name, value in changed.items()}
        for name in without:
            headers.pop(name, None)
        connection = http.client.HTTPConnection(at, self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        for name, value in headers.items():
            connection.putheader(name, value)
        if method == "POST":
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data if method == "POST" else None)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def call(self, method, path, body=None):
        status, _, content = self.request(method, path, body)
        json_body = json.loads(content)
        if status != 200:
            raise Refused(status, json_body)
        return json_body

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, **body):
        return self.call("POST", path, body)

    def place(self, state, items, /, **values):
        """The state after these items, indices, were placed so."""
        return self.post("/api/edit", revision=state["revision"], place={"items": items, "set": values})

    def end(self, patience=20):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
