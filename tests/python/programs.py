"""Runs short programs in processes of their own."""

import os
import pathlib
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
START = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
import dense, numpy, signal, threading, time
import tandem_train as tt
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of shells start with it ignored
def open_session(path):
    return tt.Session(path, dense.BATCH, settings=dense.SETTINGS)
"""


def started(text, *arguments, **options):
    program = START + textwrap.dedent(text)
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], env=dict(os.environ), **pipe, **options)


def finished(text, *arguments, status=0):
    """The output of a program that ends by itself."""
    process = started(text, *arguments)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == status, output
    return output
