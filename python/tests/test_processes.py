"""What a model does to the process around it: forks, interrupts, replaced files, memory, and the end of the interpreter."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import from_source

_PRODUCT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 512), "float32")):
        with R.dataflow():
            y = R.multiply(R.matmul(x, R.ones((512, 512), "float32")), R.const({factor}, "float32"))
            R.output(y)
        return y
"""

_ENDLESS = """
@I.ir_module
class Module:
    @R.function(private=True)
    def again(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.add(x, R.const(1, "float32"))
        z: R.Tensor((4,), "float32") = cls.again(y)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y: R.Tensor((4,), "float32") = cls.again(x)
        return y
"""


def _compiled(text):
    return tvm.compile(from_source(text), target="llvm")


def _machine(text):
    return relax.VirtualMachine(_compiled(text), tvm.cpu())


def _ones(*shape):
    return tvm.runtime.tensor(np.ones(shape, "float32"))


def _in_child(work, seconds=20):
    """What ``work`` says in a forked process: its exit code, or the negative number of a signal."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_child_that_is_forked_beside_runs_can_run():
    vm = _machine(_PRODUCT.format(factor=1))
    x, stop = _ones(8, 512), threading.Event()

    def work():
        while not stop.is_set():
            vm["main"](x)

    team = [threading.Thread(target=work) for _ in range(2)]
    for thread in team:
        thread.start()
    try:
        codes = {_in_child(lambda: vm["main"](x).numpy()[0, 0] == 512) for _ in range(60)}
    finally:
        stop.set()
        for thread in team:
            thread.join()
    assert codes == {0}


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no workers")
def test_a_forked_child_has_workers_of_its_own():
    def workers():
        names = (open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task"))
        return sum(name.startswith("relaxide") for name in names)

    vm = _machine(_PRODUCT.format(factor=1))
    x = _ones(256, 512)
    before = tvm.runtime.num_threads()
    tvm.runtime.set_num_threads(2)
    try:
        vm["main"](x)
        assert workers() >= 1

        def work():
            for _ in range(20):
                vm["main"](x)
            return workers() == 1 and tvm.runtime.num_threads() == 2

        assert _in_child(work) == 0
    finally:
        tvm.runtime.set_num_threads(before)


def test_an_interrupt_ends_a_loop_within_a_tenth_of_a_second(request):
    # A shell's background job ignores interrupts, and what it starts does, too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    vm = _machine(_ENDLESS)
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        vm["main"](_ones(4))
    # A busy machine may take longer to wake the thread; the loop itself asks thirty times a second.
    assert time.monotonic() - sent[0] < 1


@pytest.mark.parametrize("replace", ["renamed", "overwritten"])
def test_a_file_that_was_replaced_is_another_model(tmp_path, monkeypatch, replace):
    monkeypatch.chdir(tmp_path)
    x = _ones(2, 512)

    def load(factor):
        made = _compiled(_PRODUCT.format(factor=factor))
        if replace == "renamed":
            made.export_library("model.so")
        else:
            made.export_library("other.so")
            with open("other.so", "rb") as source, open("model.so", "wb") as out:
                out.write(source.read())
        return relax.VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())

    machines = [load(factor) for factor in (1, 2, 3)]
    latest = machines if replace == "renamed" else machines[-1:]
    found = [machine["main"](x).numpy()[0, 0] / 512 for machine in latest]
    assert found == ([1, 2, 3] if replace == "renamed" else [3])


def test_many_lengths_hold_little_more_than_the_longest():
    text = """
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((1, "n", 16), "float32")):
            with R.dataflow():
                s = R.matmul(x, R.permute_dims(x, axes=[0, 2, 1]))
                y = R.matmul(R.nn.softmax(s), x)
                R.output(y)
            return y
    """
    program = f"""
    import numpy as np
    import relaxide as tvm
    from relaxide import relax
    from relaxide.script import from_source
    vm = relax.VirtualMachine(tvm.compile(from_source({textwrap.dedent(text)!r}), target="llvm"), tvm.cpu())
    resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
    run = lambda n: vm["main"](tvm.runtime.tensor(np.zeros((1, n, 16), "float32")))
    run(1200)
    before = resident()
    for n in np.random.default_rng(0).permutation(np.arange(200, 1200, 8)):
        run(int(n))
    print(resident() - before)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    # The scores of the longest take 5.8 MB.
    assert int(done.stdout) < 24e6


def test_threads_in_callbacks_do_not_abort_a_program_that_ends():
    program = """
    import threading, time
    import relaxide as tvm
    tvm.register_global_func("test.nap", lambda a: (time.sleep(0.0005), a)[1])
    nap = tvm.get_global_func("test.nap")
    def work():
        while True:
            nap(1)
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)
    """
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_an_environment_variable_that_makes_no_sense_is_named():
    environment = {**os.environ, "RELAXIDE_NUM_THREADS": "many"}
    program = "import relaxide as tvm; print(tvm.runtime.num_threads())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert int(done.stdout) >= 1
    assert "RELAXIDE_NUM_THREADS" in done.stderr and "many" in done.stderr


def test_returned_constants_and_inputs_are_the_callers():
    vm = _machine(
        """
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                with R.dataflow():
                    one = R.const([1.0, 1.0, 1.0, 1.0], "float32")
                    y = (x, one, R.reshape(x, (2, 2)), R.add(x, one))
                    R.output(y)
                return y
        """.replace("\n        ", "\n").replace("R.const([1.0, 1.0, 1.0, 1.0], \"float32\")", "R.ones((4,), \"float32\")")
    )
    x = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    for _ in range(2):
        same, one, view, total = vm["main"](x)
        np.testing.assert_array_equal(one.numpy(), np.ones(4))
        np.testing.assert_array_equal(total.numpy(), np.arange(4) + 1)
        for out in (same, one, view):
            out.copyfrom(np.full(out.shape, 9, "float32"))
    np.testing.assert_array_equal(x.numpy(), np.arange(4))
