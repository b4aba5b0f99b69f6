"""Tests of the border to Rust: it copies nothing, refuses wrong arrays, and blocks no thread."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import torch
from linrec import _native, linrec

PLAIN = {"axis": 0, "reverse": False, "log_coeffs": False}


def capsules(*arrays):
    return [None if array is None else array.__dlpack__() for array in arrays]


def forward(x, c, h, y, **options):
    _native.forward(*capsules(x, c, h, y), **PLAIN | options)


def arrays(*shapes, dtype=np.float64):
    return [np.ones(shape, dtype) for shape in shapes]


def test_a_panic_is_an_exception():
    with pytest.raises(RuntimeError, match="a mistake of linrec, please report it: as the test wants it"):
        _native.panic()


def test_results_are_written_in_place():
    x, c, y = arrays(4, 4, 4)
    forward(x, c, None, y)
    assert y.tolist() == [1, 2, 3, 4]
    backwards = np.zeros(8)[::-2]
    forward(x, c, None, backwards)
    assert backwards.tolist() == [1, 2, 3, 4] and backwards.base[1::2].tolist() == [4, 3, 2, 1]


def test_results_that_cannot_be_written():
    x, c, y = arrays(4, 4, 4)
    with pytest.raises(ValueError, match=r"outputs \[4\] of f64 overlaps inputs"):
        forward(x, c, None, x)
    with pytest.raises(ValueError, match="outputs .* overlaps initial"):
        forward(x, c, y[1:2].reshape(()), y)
    broadcast = torch.zeros(1).double().expand(4)
    with pytest.raises(ValueError, match="several of its elements are one in memory"):
        forward(x, c, None, broadcast)
    overlapping = torch.zeros(6).double().as_strided((4, 2), (1, 2))
    x, c = torch.ones(4, 2).double(), torch.ones(4, 2).double()
    with pytest.raises(ValueError, match="several of its elements are one in memory"):
        forward(x, c, None, overlapping)
    with pytest.raises(ValueError, match="d_coeffs .* overlaps d_inputs"):
        d, state = torch.zeros(4, 2).double(), torch.zeros(2).double()
        _native.backward(*capsules(x, c, x.clone(), None, d, d, state), **PLAIN)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="needs NumPy 2.1, which exports what is read-only")
def test_read_only_arrays():
    x, c, y = arrays(4, 4, 4)
    y.flags.writeable = False
    versioned = lambda array: array.__dlpack__(max_version=(1, 0))
    with pytest.raises(ValueError, match=r"outputs \[4\] of f64 is read-only"):
        _native.forward(versioned(x), versioned(c), None, versioned(y), **PLAIN)
    assert y.tolist() == [1, 1, 1, 1]
    x.flags.writeable = False
    y = np.empty(4)
    _native.forward(versioned(x), versioned(c), None, versioned(y), **PLAIN)
    assert y.tolist() == [1, 2, 3, 4]


def test_arrays_that_do_not_fit():
    x, c, y = arrays(4, 4, 4)
    with pytest.raises(ValueError, match=r"shape mismatch in forward_along: inputs \[4\], coeffs \[3\]"):
        forward(x, c[:3], None, y)
    with pytest.raises(ValueError, match=r"no axis 1 in forward_along: arrays \[4\]"):
        forward(x, c, None, y, axis=1)
    with pytest.raises(ValueError, match=r"inputs \[4\], initial \[4\]"):
        forward(x, c, np.ones(4), y)
    with pytest.raises(TypeError, match="inputs is of f64, and coeffs of f32; it has to be of f64"):
        forward(x, c.astype(np.float32), None, y)
    with pytest.raises(TypeError, match="initial of f32; it has to be of f64"):
        forward(x, c, np.ones((), np.float32), y)
    with pytest.raises(BufferError, match="inputs has elements of 64 bits, 1 lanes, of DLPack's kind 0"):
        forward(np.ones(4, int), c, None, y)
    with pytest.raises(NotImplementedError, match="the CPU does not compute with elements of f16"):
        forward(*(array.astype(np.float16) for array in (x, c)), None, y.astype(np.float16))
    bytes_ = np.zeros(64, np.uint8)
    odd = bytes_[4 - bytes_.ctypes.data % 8 :][:32] if bytes_.ctypes.data % 8 < 4 else bytes_[1:33]
    with pytest.raises(ValueError, match="does not begin at a multiple of its elements' size"):
        forward(odd.view(np.float64), c, None, y)
    scan = lambda u, a, out, c=True, restarts=None: _native.selective_scan_forward(
        capsules(u, u, a, a, a if c else None, None, None, None, None), restarts, False, capsules(out, None, None)
    )
    u, a = arrays((1, 1, 4), (1, 1))
    with pytest.raises(NotImplementedError, match="no selective scan has elements of complex128 here"):
        scan(u.astype(complex), a.astype(complex), u.astype(complex))
    with pytest.raises(ValueError, match=r"u \[1, 4\] of f64 does not have 3 axes"):
        scan(u[0], a, u.copy())
    with pytest.raises(ValueError, match="out .* overlaps u"):
        scan(u, a, u)
    with pytest.raises(ValueError, match=r"shape mismatch in selective_scan: expected \[1, 1, 4\], out \[1, 1, 3\]"):
        scan(u, a, u[..., :3].copy())
    with pytest.raises(TypeError, match="C is missing"):
        scan(u, a, u.copy(), c=False)
    with pytest.raises(TypeError, match="u is of f64, and A of f32; it has to be of f64"):
        scan(u, a.astype(np.float32), u.copy())
    with pytest.raises(TypeError, match="restarts are of f64"):
        scan(u, a, u.copy(), restarts=u[0].__dlpack__())


def described(array, **changes):
    """Returns the array's capsule, whose description was changed, and the array, which has to live."""
    names = ("data", "device_type", "device_id", "ndim", "dtype", "shape", "strides", "offset")
    types = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, *[ctypes.c_uint32], *[ctypes.c_uint64] * 3)
    tensor = type("Tensor", (ctypes.Structure,), {"_fields_": list(zip(names, types))})
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    there = tensor.from_address(pointer(capsule, b"dltensor"))
    for name, value in changes.items():
        setattr(there, name, value)
    return capsule


def test_descriptions_of_memory_that_is_not_there():
    x, c, y = arrays(4, 4, 4)
    others = lambda: capsules(c, None, y)
    for changes, message in [
        ({"data": 0}, r"inputs \[4\] of f64 has no memory: its owner has given it back"),
        ({"data": 0, "offset": 64}, "inputs .* has no memory"),
        ({"offset": 2**64 - 8}, f"inputs begins {2**64 - 8} bytes after 0x[0-9a-f]+, outside of memory"),
        ({"data": 2**64 - 16}, "inputs .* reaches beyond the last address"),
    ]:
        with pytest.raises((ValueError, BufferError), match=message):
            _native.forward(described(x, **changes), *others(), **PLAIN)
    nothing = np.ones(0)
    _native.forward(described(nothing, data=0), *capsules(nothing, None, np.ones(0)), **PLAIN)


def test_objects_that_are_no_arrays():
    x, c, y = arrays(4, 4, 4)
    used = x.__dlpack__()
    torch.utils.dlpack.from_dlpack(used)
    with pytest.raises(TypeError, match="inputs is no DLPack capsule, or one that was consumed"):
        _native.forward(used, *capsules(c, None, y), **PLAIN)
    with pytest.raises(TypeError):
        _native.forward(x, *capsules(c, None, y), **PLAIN)


def test_references_to_arrays_are_released():
    array = np.ones(10)
    counted = sys.getrefcount(array)
    for _ in range(10):
        forward(array, array, None, np.empty(10))
        with pytest.raises(ValueError):
            forward(array, array, None, array)
    assert sys.getrefcount(array) == counted
    kept = torch.ones(10)
    forward(kept, kept, None, torch.empty(10))
    gone = weakref.ref(kept)
    del kept
    assert gone() is None


def test_other_threads_run_during_a_call():
    x = torch.ones(1 << 24)
    counted, done = 0, threading.Event()

    def compute():
        for _ in range(3):
            linrec(x, x)
        done.set()

    worker = threading.Thread(target=compute)
    worker.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    worker.join()
    assert counted > 3


def test_several_threads_compute_at_a_time():
    x, c = torch.randn(8, 10_000), torch.rand(8, 10_000)
    expected, results = linrec(x, c), [None] * 4

    def compute(place):
        results[place] = [linrec(x, c) for _ in range(20)]

    workers = [threading.Thread(target=compute, args=(place,)) for place in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(torch.equal(result, expected) for some in results for result in some)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_computes():
    """Computes in children of a process that has computed, as a data loader does, and in theirs."""
    script = """
import os, numpy as np
from linrec.numpy import linrec
x = np.ones((64, 20_000))
expected = linrec(x, x)
for _ in range(2):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    assert (linrec(x, x) == expected).all()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)


def test_the_package_works_without_pytorch():
    script = "import sys, linrec.numpy as numpy; assert numpy.linrec([1.0, 1.0], 1.0).tolist() == [1, 2]; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    import linrec as package

    assert {"linrec", "selective_scan"} <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        package.nothing


def test_the_number_of_threads_is_pytorchs():
    """Counts the threads that a call with one thread starts, and compares the bits."""
    script = """
import os, torch
from linrec import linrec
x, c = torch.randn(64, 20_000), torch.rand(64, 20_000)
torch.set_num_threads(1)
before = len(os.listdir("/proc/self/task"))
one = linrec(x, c)
assert len(os.listdir("/proc/self/task")) <= before + 1
torch.set_num_threads(3)
assert torch.equal(linrec(x, c), one)
assert len(os.listdir("/proc/self/task")) >= before + 3
"""
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("needs /proc")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
