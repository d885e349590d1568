"""Threads, forks, pickling, garbage collection, the end of the interpreter, memory."""

import copy
import gc
import itertools
import multiprocessing
import pickle
import threading

import dense
import pytest
from programs import finished

import tandem_train as tt


def test_sessions_in_threads_compute_what_one_thread_computes(dense_model):
    def losses():
        session = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
        return [session.step(dense.batch(step)) for step in range(50)]

    expected = losses()
    found = []
    threads = [threading.Thread(target=lambda: found.append(losses())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_a_session_in_two_threads_is_refused(session):
    refused, others = [], []

    def work():
        for step in range(300):
            try:
                session.step(dense.batch(step))
            except tt.Error as error:
                (refused if "in use" in str(error) else others).append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not others
    assert session.step(dense.batch(0)) > 0
    for error in refused:
        assert "one thread at a time" in str(error)


def test_a_session_that_is_busy_refuses_a_second_call(session):
    class Array:  # calls the session while it reads its arrays: as a second thread would
        def __dlpack_device__(self):
            with pytest.raises(tt.Error, match="in use"):
                session.predict(x=dense.batch(0)["x"])
            return 1, 0

        def __dlpack__(self, **options):
            return dense.batch(0)["x"].__dlpack__(**options)

    assert session.predict(x=Array())["y"].shape == (8, 3)


def test_other_threads_run_during_a_step(tmp_path):
    output = finished(
        """
        from small_model import dense_network
        import pathlib
        rng = numpy.random.default_rng(0)
        wide = 2500
        shapes = {"w1": (wide, 4), "b1": (wide,), "w2": (wide, wide), "b2": (wide,)}
        weights = {n: rng.normal(0, 0.01, s).astype(numpy.float32) for n, s in shapes.items()}
        path = dense_network(pathlib.Path(sys.argv[1]) / "wide.onnx", weights)
        session = tt.Session(path, 512, threads=1, settings=dense.SETTINGS)
        feeds = {"x": numpy.ones((512, 4), numpy.float32), "t": numpy.ones((512, wide), numpy.float32)}
        session.step(feeds)
        counted, done = [0], threading.Event()
        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)
        counter = threading.Thread(target=count)
        counter.start()
        before, begun = counted[0], time.perf_counter()
        session.step(feeds)
        during, seconds = counted[0] - before, time.perf_counter() - begun
        done.set()
        counter.join()
        print(during, seconds)
        assert seconds < 0.02 or during > 3
        """,
        tmp_path,
    )
    assert output


def test_pickling_is_refused_by_name(session, digits):
    trainer = tt.Trainer(digits / "train.toml", dry_run=True)
    for value, name, instead in ((session, "Session", "save_state"), (trainer, "Trainer", "make it where it runs")):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(tt.Error, match=f"a {name} cannot be pickled.*{instead}"):
                attempt(value)


def test_errors_travel_between_processes(session):
    with pytest.raises(tt.Error) as error:
        session.step(x=[1])
    copied = pickle.loads(pickle.dumps(error.value))
    assert type(copied) is tt.Error and copied.kind == "usage"
    assert copied.diagnostics == error.value.diagnostics and str(copied) == str(error.value)


def test_objects_are_collected_in_any_order(dense_model):
    for order in itertools.permutations(range(3)):
        session = tt.Session(dense_model, dense.BATCH, settings=dense.SETTINGS)
        session.step(dense.batch(0))
        things = [session, session.parameters, session.predict(x=dense.batch(0)["x"])]
        things[0].cycle = things  # the collector's work
        del session
        for number in order:
            things[number] = None
            gc.collect()
    gc.collect()


def test_a_fork_may_use_the_package_first(dense_model):
    finished(
        """
        child = os.fork()
        if child == 0:
            session = open_session(sys.argv[1])
            os._exit(0 if session.step(dense.batch(0)) > 0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert open_session(sys.argv[1]).step(dense.batch(0)) > 0
        """,
        dense_model,
    )


def test_a_fork_after_the_first_use_is_refused_by_name(dense_model):
    output = finished(
        """
        session = open_session(sys.argv[1])
        session.step(dense.batch(0))
        child = os.fork()
        if child == 0:
            for attempt in (lambda: session.step(dense.batch(0)), lambda: open_session(sys.argv[1]),
                            lambda: tt.inspect(sys.argv[1]), lambda: session.parameters["w1"]):
                try:
                    attempt()
                    print("not refused")
                except tt.Error as error:
                    print(error)
            del session
            sys.exit(0)  # with all that the end of an interpreter does
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.step(dense.batch(0)) > 0
        """,
        dense_model,
    )
    assert output.count("forked after tandem_train had computed") == 4 and "spawn" in output
    assert "not refused" not in output


def in_a_process(path):
    session = tt.Session(path, dense.BATCH, settings=dense.SETTINGS)
    return session.step(dense.batch(0))


def test_processes_that_are_spawned_compute(dense_model, session):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(in_a_process, [str(dense_model)] * 2) == [session.step(dense.batch(0))] * 2


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "threading.Thread(target=lambda: time.sleep(0.05)).start()"])
def test_the_interpreter_ends_during_a_step(dense_model, end):
    for _ in range(3):
        finished(
            f"""
            sessions = [open_session(sys.argv[1]) for _ in range(3)]
            def work(session):
                for step in range(10**9):
                    session.step(dense.batch(step % 7))
            for session in sessions:
                threading.Thread(target=work, args=(session,), daemon=True).start()
            time.sleep(0.1)
            {end}
            """,
            dense_model,
        )


def test_memory_does_not_grow(dense_model):
    output = finished(
        """
        def resident():
            with open("/proc/self/status") as file:
                return int(next(line for line in file if line.startswith("VmRSS")).split()[1])
        session = open_session(sys.argv[1])
        feeds = dense.batch(0)
        def work(steps):
            for step in range(steps):
                session.step(feeds)
                session.predict(x=feeds["x"])
                session.parameters["b1"] = session.parameters["b1"]
                try:
                    session.step(x=feeds["x"].astype(float), t=feeds["t"])
                except tt.Error:
                    pass
        work(500)
        before = resident()
        work(2000)
        print(resident() - before)
        """,
        dense_model,
    )
    assert int(output) < 1024, f"{output} KiB in 2,000 steps"


def test_sessions_are_freed(dense_model):
    output = finished(
        """
        def resident():
            with open("/proc/self/status") as file:
                return int(next(line for line in file if line.startswith("VmRSS")).split()[1])
        def work(count):
            for _ in range(count):
                open_session(sys.argv[1]).step(dense.batch(0))
        work(20)
        before = resident()
        work(100)
        print(resident() - before)
        """,
        dense_model,
    )
    assert int(output) < 4096, f"{output} KiB in 100 sessions"
