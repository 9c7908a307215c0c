"""Writes the golden files beside this script: forward and backward of the four
forward ops, computed by torch.autograd in float64. README.md has the format.

    pip install -r requirements.txt && python make.py
"""

import hashlib
import itertools
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

HERE = Path(__file__).parent
VERSION = 1
STYLES = {"neox": 0, "gptj": 1}
DTYPES = {np.dtype("<f4"): 0, np.dtype("<u4"): 1, np.dtype("<i4"): 2, np.dtype("<f8"): 3}


# ---- inputs: float32 values, held as float64 tensors -----------------------


def rng_of(name):
    # Seeded by the case's own name, so adding a case leaves the others as they are.
    return np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))


def full(rng, *shape):
    """Uniform in [-2, 2) using all 24 bits of a float32."""
    return torch.from_numpy(rng.integers(-(2**23), 2**23, shape) / 2.0**22)


def coarse(rng, *shape):
    """Uniform in [-2, 2) in steps of 1/1024: float32 sums of up to 4096 of them
    are exact in any order, so the tests may compare with ==."""
    return torch.from_numpy(rng.integers(-(2**11), 2**11, shape) / 2.0**10)


def f32(values):
    return torch.as_tensor(np.asarray(values, dtype=np.float32).astype(np.float64))


# ---- the ops ----------------------------------------------------------------


def rms_norm(x, gamma, beta=None, eps=1e-5):
    y = F.rms_norm(x, x.shape[-1:], gamma, eps)
    return y if beta is None else y + beta


def rope(x, cos, sin, head_dim, n_rot, style):
    batch, seq, _ = x.shape
    half = n_rot // 2
    heads = x.reshape(batch, seq, -1, head_dim)
    # A table has a row a position (shared by the batch) or a row a token.
    c = cos[:, :half].reshape(-1, seq, 1, half)
    s = sin[:, :half].reshape(-1, seq, 1, half)
    if style == "neox":
        a, b = heads[..., :half], heads[..., half:n_rot]
        rotated = torch.cat([a * c - b * s, b * c + a * s], -1)
    else:
        a, b = heads[..., 0:n_rot:2], heads[..., 1:n_rot:2]
        rotated = torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)
    return torch.cat([rotated, heads[..., n_rot:]], -1).reshape(x.shape)


def cumsum(x, axis, exclusive=False, reverse=False):
    if reverse:
        x = x.flip(axis)
    y = x.cumsum(axis)
    if exclusive:
        # A shift by one, not y - x: no cancellation.
        y = torch.cat([torch.zeros_like(x.narrow(axis, 0, 1)), y.narrow(axis, 0, x.shape[axis] - 1)], axis)
    return y.flip(axis) if reverse else y


def gather(table, indices, axis):
    return torch.index_select(table, axis, torch.as_tensor(indices, dtype=torch.int64))


def backward(forward, inputs, dy):
    """y, and the gradient of sum(y * dy) for every input."""
    leaves = [t.clone().requires_grad_() for t in inputs]
    y = forward(*leaves)
    return y.detach(), torch.autograd.grad(y, leaves, dy)


def same(got, want):
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


# ---- the cases: (name, attributes, arrays) ----------------------------------


def rms_norm_case(name, rows, h, eps, with_beta=False, edit=None):
    eps = float(np.float32(eps))
    rng = rng_of(name)
    x, gamma, dy = full(rng, rows, h), full(rng, h), full(rng, rows, h)
    beta = full(rng, h) if with_beta else None
    if edit:
        edit(x, gamma)
    zero = torch.zeros(h, dtype=torch.float64)
    inputs = [x, gamma, zero if beta is None else beta]
    y, (dx, dgamma, dbeta) = backward(lambda *i: rms_norm(*i, eps), inputs, dy)

    r = 1 / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    same(y, x * r * gamma + inputs[2])
    same(dx, r * (gamma * dy - x * r * r * (gamma * dy * x).mean(-1, keepdim=True)))
    same(dgamma, (dy * x * r).sum(0))
    same(dbeta, dy.sum(0))

    arrays = {"x": x, "gamma": gamma, "beta": beta, "dy": dy}
    arrays |= {"y": y, "dx": dx, "dgamma": dgamma, "dbeta": dbeta}
    attrs = {"rows": rows, "h": h, "eps": eps}
    return name, attrs, {k: v for k, v in arrays.items() if v is not None}


def rms_norm_cases():
    def zero_row(x, gamma):
        x[1] = 0

    def gamma_zeros(x, gamma):
        gamma[::3] = 0

    def row_scales(x, gamma):
        # eps dominates, matters, and vanishes.
        x *= f32([[2.0**-13], [2.0**-8], [1.0], [2.0**13]])

    yield rms_norm_case("one_element", 1, 1, 1e-5, with_beta=True)
    yield rms_norm_case("small", 3, 17, 1e-6)
    yield rms_norm_case("many_rows", 33, 64, 1e-5, with_beta=True)
    yield rms_norm_case("past_one_workgroup", 5, 257, 1e-6)
    yield rms_norm_case("long_rows", 2, 1000, 1e-5, with_beta=True)
    yield rms_norm_case("zero_row", 3, 17, 1e-6, edit=zero_row)
    yield rms_norm_case("gamma_zeros", 5, 63, 1e-5, edit=gamma_zeros)
    yield rms_norm_case("row_scales", 4, 65, 1e-5, with_beta=True, edit=row_scales)


def rope_case(style, head_dim, n_rot, table="shared", batch=2, seq=5, heads=3):
    name = f"{style}_head{head_dim}_rot{n_rot}_{table}"
    rng = rng_of(name)
    half = n_rot // 2
    # Per-token positions differ between batch rows, repeat and run backwards.
    positions = [0, 1, 2, 3, 4, 7, 3, 100, 0, 41] if table == "per_token" else range(seq)
    angle = np.outer(list(positions), 10000.0 ** (-2 * np.arange(half) / n_rot))
    cos, sin = f32(np.cos(angle)), f32(np.sin(angle))
    if table == "wide":
        # Never to be read: no cosine is 1000.
        cos, sin = (F.pad(t, (0, head_dim // 2 - half), value=1000.0) for t in (cos, sin))
    x, dy = (full(rng, batch, seq, heads * head_dim) for _ in "xy")
    y, (dx,) = backward(lambda x: rope(x, cos, sin, head_dim, n_rot, style), [x], dy)

    check_rope(x, y, cos[:, :half], sin[:, :half], head_dim, n_rot, style)
    same(dx, rope(dy, cos, -sin, head_dim, n_rot, style))

    attrs = {"batch": batch, "seq": seq, "heads": heads, "head_dim": head_dim, "n_rot": n_rot}
    attrs |= {"style": STYLES[style], "per_token": table == "per_token"}
    return name, attrs, {"x": x, "cos": cos, "sin": sin, "dy": dy, "y": y, "dx": dx}


def check_rope(x, y, cos, sin, head_dim, n_rot, style):
    """The same rotation by the other usual formula of each style."""
    batch, seq, _ = x.shape
    x, y = (t.reshape(batch, seq, -1, head_dim) for t in (x, y))
    cos, sin = (t.reshape(-1, seq, 1, n_rot // 2) for t in (cos, sin))
    rot = x[..., :n_rot]
    if style == "gptj":  # complex multiplication
        pairs = torch.view_as_complex(rot.unflatten(-1, (-1, 2)).contiguous())
        want = torch.view_as_real(pairs * torch.complex(cos, sin).expand(pairs.shape)).flatten(-2)
    else:  # rotate_half
        first, second = rot.chunk(2, -1)
        want = rot * torch.cat([cos, cos], -1) + torch.cat([-second, first], -1) * torch.cat([sin, sin], -1)
    same(y[..., :n_rot], want)
    assert torch.equal(y[..., n_rot:], x[..., n_rot:])


def rope_cases():
    for style in STYLES:
        for table in ("shared", "per_token", "wide"):
            yield rope_case(style, 6, 4, table)
        yield rope_case(style, 5, 2, "per_token")  # rows of 15: nothing is a multiple of 4
        yield rope_case(style, 8, 8, "per_token")
    # Fewer of the large heads, to keep the file small.
    yield rope_case("neox", 64, 64)
    yield rope_case("gptj", 64, 64, heads=1)
    yield rope_case("neox", 80, 20, "wide", heads=1)
    yield rope_case("gptj", 80, 20, heads=2)


def cumsum_case(shape, axis, exclusive=False, reverse=False, label="", x=None, dy=None):
    name = label + "x".join(map(str, shape)) + f"_axis{axis}"
    name += "_exclusive" * exclusive + "_reverse" * reverse
    rng = rng_of(name)
    exact = label != "positive_"
    if not exact:
        # All of one sign: a relative tolerance means something.
        x, dy = full(rng, *shape).abs(), full(rng, *shape).abs()
    x = coarse(rng, *shape) if x is None else f32(x)
    dy = coarse(rng, *shape) if dy is None else f32(dy)
    y, (dx,) = backward(lambda x: cumsum(x, axis, exclusive, reverse), [x], dy)
    same(dx, cumsum(dy, axis, exclusive, not reverse))

    dim = axis % len(shape)
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse, "exact": exact}
    attrs |= {"outer": np.prod(shape[:dim]), "n": shape[dim], "inner": np.prod(shape[dim + 1 :])}
    return name, attrs, {"x": x, "dy": dy, "y": y, "dx": dx}


def cumsum_cases():
    flags = list(itertools.product([False, True], repeat=2))
    for shape, axis in [((1,), 0), ((65,), 0), ((3, 7), 0), ((3, 7), 1), ((2, 7, 3), 1)]:
        for exclusive, reverse in flags:
            yield cumsum_case(shape, axis, exclusive, reverse)
    for axis in range(4):
        yield cumsum_case((2, 3, 5, 4), axis, *flags[axis])
        yield cumsum_case((2, 3, 5, 4), axis - 4, *flags[3 - axis])
    yield cumsum_case((257,), -1, reverse=True)
    yield cumsum_case((257,), 0, exclusive=True)
    yield cumsum_case((1025,), 0)
    yield cumsum_case((1025,), 0, exclusive=True, reverse=True)
    yield cumsum_case((2, 257), -1, exclusive=True)
    yield cumsum_case((257, 2), 0, reverse=True)
    yield cumsum_case((2, 65, 3), 1)
    yield cumsum_case((3, 1, 2), 1, exclusive=True)
    yield cumsum_case((257,), 0, label="positive_")
    # Total minus prefix would lose the ones; 1e8 + 3 is 1e8 in float32 in any order.
    yield cumsum_case((4,), 0, label="cancelling_", x=[1, 1, 1, 1e8], dy=[1e8, 1, 1, 1])
    yield cumsum_case((4,), 0, True, True, label="cancelling_", x=[1e8, 1, 1, 1], dy=[1, 1, 1, 1e8])


def gather_case(name, shape, axis, indices, dtype="<u4"):
    rng = rng_of(name)
    axis_dim = shape[axis]
    if isinstance(indices, int):
        indices = rng.integers(0, axis_dim, indices)
    indices = np.asarray(indices, dtype=dtype)
    table = full(rng, *shape)
    dy = coarse(rng, *shape[:axis], len(indices), *shape[axis + 1 :])
    y, (dtable,) = backward(lambda t: gather(t, indices, axis), [table], dy)

    outer, trailing = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    want = torch.zeros(outer, axis_dim, trailing, dtype=torch.float64)
    for j, i in enumerate(indices):
        want[:, i] += dy.reshape(outer, len(indices), trailing)[:, j]
    assert torch.equal(dtable.reshape(want.shape), want)

    attrs = {"axis": axis, "outer": outer, "axis_dim": axis_dim, "num_idx": len(indices), "trailing": trailing}
    return name, attrs, {"table": table, "indices": indices, "dy": dy, "y": y, "dtable": dtable}


def gather_cases():
    yield gather_case("one_value", (1, 1), 0, [0])
    yield gather_case("rows", (10, 5), 0, 7)
    yield gather_case("rows_i32", (10, 5), 0, 7, "<i4")
    yield gather_case("rows_many", (4, 3), 0, 65, "<i4")
    yield gather_case("rows_of_64", (17, 64), 0, 12)
    yield gather_case("rows_repeated", (4, 2), 0, [1, 3, 1])
    yield gather_case("rows_one_hot_spot", (3, 4), 0, [1] * 257)
    yield gather_case("rows_permuted", (6, 3), 0, [5, 3, 1, 0, 2, 4])
    yield gather_case("rows_single", (10, 5), 0, [5])
    yield gather_case("rows_none", (4, 3), 0, [])
    yield gather_case("rank1", (65,), 0, 33)
    yield gather_case("rank2_axis1", (3, 17), 1, 9)
    yield gather_case("rank2_axis1_many", (2, 5), 1, 33, "<i4")
    yield gather_case("rank3_axis0", (5, 2, 3), 0, 8)
    yield gather_case("rank3_axis1", (2, 3, 2), 1, [2, 0, 2, 2])
    yield gather_case("rank3_axis1_few", (3, 9, 4), 1, 4, "<i4")
    yield gather_case("rank3_axis2", (2, 3, 7), 2, 11)
    yield gather_case("rank4_axis0", (3, 2, 2, 5), 0, 7)
    yield gather_case("rank4_axis1", (2, 5, 3, 2), 1, 3)
    yield gather_case("rank4_axis2", (2, 2, 6, 3), 2, 10, "<i4")


# ---- the files --------------------------------------------------------------


def text(s):
    return struct.pack("<I", len(s.encode())) + s.encode()


def array_bytes(name, value):
    if torch.is_tensor(value):
        assert torch.isfinite(value).all(), name
        value = value.numpy().astype("<f4")
    head = struct.pack(f"<II{value.ndim}I", DTYPES[value.dtype], value.ndim, *value.shape)
    return text(name) + head + value.tobytes()


def case_bytes(name, attrs, arrays):
    out = text(name) + struct.pack("<I", len(attrs))
    out += b"".join(text(k) + struct.pack("<d", v) for k, v in attrs.items())
    out += struct.pack("<I", len(arrays))
    return out + b"".join(array_bytes(k, v) for k, v in arrays.items())


def write(op, cases):
    cases = list(cases)
    names = [name for name, _, _ in cases]
    assert len(set(names)) == len(names), f"{op}: a case name is used twice"
    data = b"WGRADGLD" + struct.pack("<II", VERSION, len(cases))
    data += b"".join(case_bytes(*case) for case in cases)
    (HERE / f"{op}.bin").write_bytes(data)
    print(f"{op}.bin: {len(cases)} cases, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # one order of sums
    write("rms_norm", rms_norm_cases())
    write("rope", rope_cases())
    write("cumsum", cumsum_cases())
    write("gather", gather_cases())
