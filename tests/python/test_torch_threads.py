"""After a step of a Session in the main thread no thread of PyTorch spins any more."""

import os

import pytest
from programs import finished

PROGRAM = """
import torch
from tandem_train import _tandem
session = open_session(sys.argv[1])
feeds = dense.batch(0)
x = torch.randn(400, 400)

def spun(step):
    "The least milliseconds of processor time that other threads take in 5 ms after an operation of PyTorch and a step."
    taken = []
    for _ in range(15):
        time.sleep(0.02)
        x @ x
        step()
        before = time.process_time() - time.thread_time()
        time.sleep(0.005)
        taken.append(1e3 * (time.process_time() - time.thread_time() - before))
    return min(taken)

for is_on in (False, True):
    _tandem.set_core_sharing(is_on)
    print(spun(lambda: session.step(feeds)), flush=True)
"""


def test_waiting_threads_release_their_cores(dense_model):
    pytest.importorskip("torch", reason="needs PyTorch")
    if os.cpu_count() < 2:
        pytest.skip("needs two processors")
    alone, shared = map(float, finished(PROGRAM, dense_model).splitlines())
    if alone < 1:
        pytest.skip(f"PyTorch's threads do not spin here: {alone} ms")
    assert shared < 0.5


def test_a_forked_child_does_not_wait_for_threads_that_it_lacks(dense_model):
    pytest.importorskip("torch", reason="needs PyTorch")
    program = """
import torch
x = torch.randn(400, 400)
x @ x
child = os.fork()
if child == 0:
    os._exit(0 if open_session(sys.argv[1]).step(dense.batch(0)) > 0 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    assert finished(program, dense_model) == ""
