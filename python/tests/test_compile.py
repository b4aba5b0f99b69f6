"""Tests of the operators' promises to PyTorch, and of compiled code, which has eager bits."""

from __future__ import annotations

import pytest
import torch
from linrec import linrec, selective_scan
from torch.library import opcheck

scan, scan_backward = torch.ops.linrec.scan.default, torch.ops.linrec.scan_backward.default
scan_with_final = torch.ops.linrec.scan_with_final.default


def leaves(*shapes, dtype=torch.float32):
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128, torch.bfloat16])
@pytest.mark.parametrize("strided", [False, True])
def test_the_operators_pass_opcheck(dtype, strided):
    x, c, y = leaves((2, 3, 7), (2, 3, 7), (2, 3, 7), dtype=dtype)
    if strided:
        x, c, y = (tensor.detach().mT.contiguous().mT.requires_grad_() for tensor in (x, c, y))
    (h,) = leaves((2, 3), dtype=torch.float32 if dtype == torch.bfloat16 else dtype)
    for *options, initial in [(False, False, False, h), (True, False, True, None), (True, True, False, h)]:
        opcheck(scan, (x, c, initial, *options))
        opcheck(scan_with_final, (x, c, initial, *options))
        opcheck(scan_backward, (x, c, y, initial, *options))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_calls_have_the_bits_of_eager_calls(dynamic):
    torch._dynamo.reset()

    def layer(x, c, h, dim, reverse):
        y, last = linrec(x, c.sigmoid(), initial=h, dim=dim, reverse=reverse, in_order=reverse, return_final=True)
        return y, last

    compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for dim, reverse, shape in [(-1, False, (3, 9)), (1, True, (2, 9, 4)), (-1, False, (5, 17))]:
        x, c = leaves(shape, shape)
        (h,) = leaves(x.select(dim, 0).shape)
        results = []
        for run in (layer, compiled):
            y, last = run(x, c, h, dim, reverse)
            results.append([y, last, *torch.autograd.grad(y.sum() + last.pow(2).sum(), (x, c, h))])
        for eager, other in zip(*results):
            assert torch.equal(eager, other) and eager.stride() == other.stride()


def test_no_break_in_a_graph():
    torch._dynamo.reset()
    x, c = leaves((3, 9), (3, 9))
    explained = torch._dynamo.explain(lambda x, c: linrec(x.sin(), c.sigmoid(), log_coeffs=True).cos())(x, c)
    assert explained.graph_break_count == 0 and explained.graph_count == 1
    u, delta = leaves((2, 4, 9), (2, 4, 9))
    A, B = leaves((4, 3), (2, 3, 9))
    scan = lambda *tensors: selective_scan(*tensors, delta_softplus=True, return_last_state=True)
    explained = torch._dynamo.explain(scan)(u, delta, A, B, B)
    assert explained.graph_break_count == 0 and explained.graph_count == 1


def test_compiled_calls_promote_types_as_eager_ones():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, c, h: linrec(x, c, initial=h), fullgraph=True, backend="aot_eager")
    x, c = torch.randn(3, 9), torch.rand(3, 9)
    scalar = torch.tensor(0.5, dtype=torch.float64)
    for x, c, h in [(x, 0.5, 2.0), (x.bfloat16(), c, None), (x, c.double(), 1.0), (x, scalar, scalar), (x, 0.5j, None), (x.half(), 1, True)]:
        got, wanted = compiled(x, c, h), linrec(x, c, initial=h)
        assert got.dtype == wanted.dtype and torch.equal(got, wanted)


@pytest.mark.parametrize("state", [(4, 6), (6,), (), None])
def test_exported_with_symbolic_sizes(state):
    """No size of one tensor is compared with a size of another axis, and no length is fixed."""

    class Layer(torch.nn.Module):
        def forward(self, x, c, h):
            return linrec(x, c, initial=h)

    class Fused(torch.nn.Module):
        def forward(self, u, A, B):
            return selective_scan(u, u, A, B, B)

    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    x, c = torch.randn(4, 6, 50), torch.rand(6, 1)
    h = None if state is None else torch.randn(state)
    shapes = {"x": {0: batch, 2: length}, "c": None, "h": {0: batch} if state == (4, 6) else None}
    exported = torch.export.export(Layer(), (x, c, h), dynamic_shapes=shapes).module()
    other, h = torch.randn(6, 6, 7), torch.randn(6, 6) if state == (4, 6) else h
    assert torch.equal(exported(other, c, h), linrec(other, c, initial=h))
    A, B = -torch.rand(6, 3), torch.randn(4, 3, 50)
    sizes = {"u": {0: batch, 2: length}, "A": None, "B": {0: batch, 2: length}}
    exported = torch.export.export(Fused(), (x, A, B), dynamic_shapes=sizes).module()
    other, B = torch.randn(2, 6, 200), torch.randn(2, 3, 200)
    assert torch.equal(exported(other, A, B), selective_scan(other, other, A, B, B))


def test_exported():
    class Layer(torch.nn.Module):
        def forward(self, x, c):
            return linrec(x, c, reverse=True)

    x, c = torch.randn(2, 5), torch.rand(2, 5)
    exported = torch.export.export(Layer(), (x, c))
    assert torch.equal(exported.module()(x, c), linrec(x, c, reverse=True))


def test_the_fused_selective_scan_without_data():
    """Compares the shapes and types that a GPU would compute."""
    from linrec._selective_scan import scan, scan_backward
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        on = {"device": "cuda"}
        u = torch.empty(2, 6, 17, dtype=torch.bfloat16, **on)
        A, D = torch.empty(6, 4, **on), torch.empty(6, **on)
        B, C = torch.empty(2, 3, 4, 17, dtype=torch.bfloat16, **on), torch.empty(6, 4, **on)
        out, last = selective_scan(u, u, A, B, C, D, None, None, True, True)
        assert (out.shape, out.dtype, out.device.type) == (u.shape, u.dtype, "cuda")
        assert (last.shape, last.dtype) == ((2, 6, 4), torch.float32)
        _, _, checkpoints = scan(u, u, A, B, C, D, None, None, None, None, True, True)
        assert checkpoints.shape == (2 * 3 * 6 * 4,)
        _, _, nothing = scan(u, u, A, B, C, D, None, None, None, None, True, False)
        assert nothing.shape == (0,)
        gradients = scan_backward(u, u, A, B, C, D, None, None, None, None, True, out, last, checkpoints)
        for tensor, gradient in zip((u, u, A, B, C, D), gradients):
            assert gradient.shape == tensor.shape and gradient.dtype == tensor.dtype
        assert all(gradient.numel() == 0 for gradient in gradients[6:])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_exported_to_onnx(dtype, tmp_path):
    """Compares the library with ONNX Runtime, for a length that the exporter has not seen."""
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    from linrec import onnx

    class Model(torch.nn.Module):
        def forward(self, x, c, h):
            first = linrec(x, c.sigmoid(), reverse=True)
            second, last = linrec(first, -c.abs(), initial=h, dim=1, log_coeffs=True, return_final=True)
            return first, second, last, linrec(x, 0.5, initial=h, dim=1, reverse=True)

    def arguments(length):
        state = torch.float32 if dtype == torch.float16 else dtype
        x, c = torch.randn(2, 2, 3, length, dtype=dtype)
        return x, c, torch.randn(2, length, dtype=state)

    program = torch.onnx.export(
        Model().eval(),
        arguments(5),
        dynamo=True,
        verbose=False,
        custom_translation_table=onnx.translations(),
        dynamic_shapes=[{2: "length"}, {2: "length"}, {1: "length"}],
    )
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    given = arguments(9)
    names = [each.name for each in session.get_inputs()]
    results = session.run(None, {name: tensor.numpy() for name, tensor in zip(names, given)})
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3}[dtype]
    for got, expected in zip(results, Model()(*given), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), expected, rtol=tolerance, atol=tolerance)
