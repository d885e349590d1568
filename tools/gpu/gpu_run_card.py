"""Whether this machine has a GPU that its driver can use, for tools/gpu_run.sh."""

import ctypes
import pathlib
import subprocess
import sys

PROBE_LIMIT = 60  # seconds that the driver may take to start


def probe():
    """Prints the driver's answer: "opened", its status and the number of GPUs, or "closed" and the loader's error."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print("closed", error)
        return
    try:
        start, count_cards = driver.cuInit, driver.cuDeviceGetCount
    except AttributeError as error:
        print("closed", error)
        return
    count = ctypes.c_int(0)
    status = start(0)
    if status == 0:
        status = count_cards(ctypes.byref(count))
    print("opened", status, count.value)


def missing_card():
    """Why no GPU can be used, in one sentence; None: one can. Another process asks: a file that was cut short ends it, a pipe stops it."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import gpu_run_card; gpu_run_card.probe()"
    command = [sys.executable, "-c", program, pathlib.Path(__file__).resolve().parent]
    broken = "the NVIDIA driver's library (libcuda.so.1) cannot be used: "
    try:
        asked = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PROBE_LIMIT)
    except subprocess.TimeoutExpired:
        return broken + f"it does not answer within {PROBE_LIMIT} s."
    if asked.returncode < 0:
        return broken + f"it ends the process by signal {-asked.returncode}."
    how, _, said = (asked.stdout.splitlines() or [""])[-1].partition(" ")
    if how == "closed":
        is_absent = said.startswith("libcuda.so.1:") and said.endswith("No such file or directory")
        return "this machine has no NVIDIA driver (libcuda.so.1)." if is_absent else broken + said + "."
    if how != "opened":
        return broken + (asked.stderr.strip().rpartition("\n")[2] or f"exit code {asked.returncode}") + "."
    status, count = map(int, said.split())
    if status == 100 or (status == 0 and count == 0):  # CUDA_ERROR_NO_DEVICE
        return "the NVIDIA driver sees no card."
    if status != 0:
        return f"the NVIDIA driver does not start (error {status})."
    return None
