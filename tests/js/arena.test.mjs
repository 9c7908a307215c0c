// The starting module's own surface: six ops on byte offsets into one arena, read back through
// views; and what arenas and tensors tell of themselves.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

pageTest("the six ops on byte offsets", async ({ gpu, close, equal, f32 }) => {
  for (const path of ["gpu", "host"]) {
    const arena = gpu.arena(8192);
    const put = (offset, values, shape) => arena.at(offset, shape).write(f32(values));
    const read = async (offset, ...shape) => [...(await arena.at(offset, shape).read())];
    put(0, [1, 2, -3, 4, 0.5, -1, 2, 0.25], [2, 4]);
    put(256, [1, 0.5, -2, 3], [4]);
    put(512, [1, -1, 2, 0.5, 0.25, 1, -0.5, 2], [2, 4]);
    for (const offset of [768, 1024, 1280, 3072, 4096, 5120]) {
      put(offset, new Array(64).fill(NaN), [64]);
    }
    const rms = { x: 0, gamma: 256, beta: 99, dy: 512, rows: 2, h: 4, eps: 1e-5, path };
    equal(await arena.runRmsNormBackwardInput({ ...rms, dx: 768 }), undefined);
    equal(await arena.runRmsNormBackwardGamma({ ...rms, dgamma: 1024 }), undefined);
    equal(await arena.runRmsNormBackwardBeta({ ...rms, dbeta: 1280 }), undefined);
    const dx = [0.1460595, -0.6207512, -0.8033268, -0.3286321];
    dx.push(-0.0382798, 0.9442781, -0.1531191, 5.0787067);
    close(await read(768, 2, 4), dx, `dx, ${path}`);
    close(await read(1024, 4), [0.4736129, -1.5980148, -3.0586073, 1.1641555], `dgamma, ${path}`);
    close(await read(1280, 4), [1.25, 0, 1.5, 2.5], `dbeta, ${path}`);

    put(2048, [1, 2, 3, 4, 5, 6], [6]);
    put(2304, [0.5403023, 0.99995], [2]);
    put(2560, [0.841471, 0.0099998], [2]);
    const rope = { dy: 2048, cos: 2304, sin: 2560, dx: 3072, batch: 1, seq: 1, hidden: 6 };
    const heads = { headDim: 6, nRot: 4, cosLen: 2, path };
    equal(await arena.runRopeBackward({ ...rope, ...heads }), undefined);
    const turned = [3.0647153, 2.0398993, 0.7794359, 3.9798003, 5, 6];
    close(await read(3072, 6), turned, `rope, ${path}`);

    const scan = { dy: 2048, dx: 4096, rows: 2, cols: 3, path };
    equal(await arena.runCumsumBackward(scan), undefined);
    close(await read(4096, 2, 3), [6, 5, 3, 15, 11, 6], `cumsum, ${path}`);
    await arena.runCumsumBackward({ ...scan, exclusive: true });
    close(await read(4096, 6), [5, 3, 0, 11, 6, 0], `exclusive cumsum, ${path}`);

    arena.at(3840, [3], "u32").write(new Uint32Array([1, 3, 1]));
    const counts = { outer: 1, axisDim: 4, numIdx: 3, trailing: 2, path };
    equal(
      await arena.runGatherBackward({ dy: 2048, indices: 3840, dst: 5120, ...counts }),
      undefined,
    );
    close(await read(5120, 4, 2), [0, 0, 6, 8, 0, 0, 3, 4], `gather, ${path}`);
    // The lanes after each result are as they were.
    for (const [offset, used] of [
      [768, 8],
      [1024, 4],
      [3072, 6],
      [4096, 6],
      [5120, 8],
    ]) {
      const rest = (await read(offset, 64)).slice(used);
      equal(
        rest.filter((v) => !Number.isNaN(v)),
        [],
        `after ${offset}, ${path}`,
      );
    }
    equal(arena.memory(), { allocated: 8192, used: 0, peak: 0 });
    arena.destroy();
  }
});

pageTest("wider rope tables and many batches by length", async ({ wgrad, gpu, close, f32 }) => {
  const arena = gpu.arena(8192);
  const [batch, seq, headDim, nRot, hidden] = [2, 3, 6, 4, 12];
  const data = Float32Array.from({ length: 72 }, (_, i) => Math.sin(i));
  arena.at(0, [72]).write(data);
  const dy = gpu.tensor(data, [batch, seq, hidden]);
  const table = (offset, rows, stride, f) => {
    const tensor = arena.at(offset, [rows, stride]);
    tensor.write(Float32Array.from({ length: rows * stride }, (_, i) => f(i)));
    return tensor;
  };
  for (const rows of [seq, batch * seq]) {
    for (const stride of [nRot / 2, headDim / 2]) {
      const [cos, sin] = [table(1024, rows, stride, Math.cos), table(2048, rows, stride, Math.sin)];
      const want = await wgrad.ropeBackward(dy, cos, sin, { headDim, nRot });
      await arena.runRopeBackward({
        ...{ dy: 0, cos: 1024, sin: 2048, dx: 3072 },
        ...{ batch, seq, hidden, headDim, nRot, cosLen: rows * stride },
      });
      const got = await arena.at(3072, [72]).read();
      close(got, await want.read(), `${rows} rows of ${stride}`);
      want.free();
    }
  }
});

pageTest("views", async ({ wgrad, gpu, equal, close, f32 }) => {
  const arena = gpu.arena(1000);
  equal(arena.memory(), { allocated: 0, used: 0, peak: 0 }, "before the first use");
  const x = arena.at(256, [2, 2]);
  equal(arena.memory(), { allocated: 1024, used: 0, peak: 0 });
  x.write(f32(1, 2, 3, 4));
  const same = arena.at(256, [4], "u32");
  equal([...(await same.read())], [0x3f800000, 0x40000000, 0x40400000, 0x40800000]);
  equal([x.byteOffset, x.shape, x.dtype, x.length], [256, [2, 2], "f32", 4]);
  equal([same.dtype, same.buffer === x.buffer], ["u32", true]);
  x.free();
  equal([x.disposed, same.disposed], [true, false]);
  equal((await arena.at(768, [64]).read()).length, 64, "up to the end");
  equal((await arena.at(768, [0, 3]).read()).length, 0, "empty");
  close(await (await wgrad.cumsum(arena.at(256, [4]))).read(), [1, 3, 6, 10]);
});

pageTest("what is read is JavaScript's own", async ({ gpu, equal, f32 }) => {
  const arena = gpu.arena(4096);
  const kinds = {
    f32: f32(1.5, -0, NaN, Infinity, 1e-45),
    u32: new Uint32Array([0, 1, 2 ** 32 - 1]),
    i32: new Int32Array([0, -1, 2 ** 31 - 1, -(2 ** 31)]),
  };
  for (const [dtype, data] of Object.entries(kinds)) {
    const uploaded = arena.upload(data, [data.length]);
    const written = arena.alloc([data.length], dtype);
    written.write(data);
    for (const tensor of [uploaded, written, arena.at(uploaded.byteOffset, [data.length], dtype)]) {
      equal([tensor.dtype, tensor.shape, tensor.length], [dtype, [data.length], data.length]);
      const [a, b] = await Promise.all([tensor.read(), tensor.read()]);
      equal(a.constructor.name, data.constructor.name);
      equal(new Uint32Array(a.buffer), new Uint32Array(data.buffer), `bits of ${dtype}`);
      equal([a.byteOffset, a.buffer.byteLength], [0, data.byteLength]);
      a.fill(7);
      equal(new Uint32Array(b.buffer), new Uint32Array(data.buffer), "another read");
    }
  }
  // The data may be part of a larger array, and change once the call has returned.
  const part = f32(0, 1, 2, 3, 4, 5).subarray(2, 4);
  const x = arena.upload(part, [2]);
  part.fill(9);
  equal(await x.read(), f32(2, 3));
  equal(await arena.upload(f32(4), []).read(), f32(4), "a scalar");
  for (const n of [1, 3, 25, 63, 64, 65]) {
    const data = Float32Array.from({ length: n }, (_, i) => i + 1);
    const guards = [
      arena.upload(f32(-1), [1]),
      arena.upload(data, [n]),
      arena.upload(f32(-2), [1]),
    ];
    guards[1].write(data.map((v) => -v));
    const values = await Promise.all(guards.map((tensor) => tensor.read()));
    equal(values, [f32(-1), data.map((v) => -v), f32(-2)], `${n} values`);
    guards.forEach((tensor) => tensor.free());
  }
});

pageTest("an arena grows by blocks", async ({ gpu, equal, f32 }) => {
  const arena = gpu.arena(1024);
  const tensors = Array.from({ length: 9 }, (_, i) => arena.upload(f32(i), [1]));
  equal(arena.memory(), { allocated: 3072, used: 2304, peak: 2304 });
  const large = arena.alloc([1000]);
  equal(arena.memory().allocated, 3072 + 4096);
  equal(new Set(tensors.map((tensor) => tensor.buffer)).size, 3, "buffers");
  for (const tensor of [...tensors, large]) equal(tensor.byteOffset % 256, 0, "alignment");
  const values = await Promise.all(tensors.map((tensor) => tensor.read()));
  equal(
    values.map(([v]) => v),
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
  tensors.forEach((tensor) => tensor.free());
  equal(arena.memory(), { allocated: 7168, used: 4096, peak: 6400 });
  arena.alloc([256]);
  equal(arena.memory().allocated, 7168, "reused");
  large.free();
});
