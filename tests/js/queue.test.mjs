// When work reaches the GPU: calls made together share a submit, are submitted by the time their
// promises settle, never read back, and are there for other users of the device.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

pageTest(
  "ops called together share one submit",
  async ({ wgrad, gpu, probe, equal, close, f32 }) => {
    const x = gpu.tensor(f32(1, 10, 100), [1, 3]);
    const gamma = gpu.tensor(f32(1, 1, 1), [3]);
    const indices = gpu.tensor(new Uint32Array([0, 0]), [2]);
    const [submits, maps] = [probe.submits, probe.maps];
    const calls = [
      wgrad.cumsum(x),
      wgrad.cumsumBackward(x),
      wgrad.rmsNorm(x, gamma),
      wgrad.rmsNormBackward(x, gamma, x),
      wgrad.gather(x, indices),
      wgrad.gatherBackward(x, gpu.tensor(new Uint32Array([0]), [1]), { axisDim: 2 }),
    ];
    // The upload in between goes to the queue after what was called before it.
    equal(probe.submits, submits + 1, "submits before the upload");
    const results = await Promise.all(calls);
    equal([probe.submits, probe.maps], [submits + 2, maps], "submits, maps");
    close(await results[0].read(), [1, 11, 111]);
    close(await results[5].read(), [1, 10, 100, 0, 0, 0]);

    const chain = [];
    const before = probe.submits;
    let y = await wgrad.cumsum(x);
    equal(probe.submits, before + 1, "submitted when settled");
    for (let i = 0; i < 5; i++) chain.push((y = await wgrad.cumsum(y)));
    equal([probe.submits, probe.maps], [before + 6, maps + 2], "submits, maps of a chain");
  },
);

pageTest("no op of the GPU path reads back", async ({ wgrad, gpu, probe, equal, f32, ok }) => {
  const tensor = (values, shape) => gpu.tensor(f32(values), shape);
  const [x, gamma] = [tensor([1, 2, 3, 4], [2, 2]), tensor([1, 1], [2])];
  const indices = gpu.tensor(new Uint32Array([1, 1]), [2]);
  const [cos, sin, cube] = [tensor([0], [1, 1]), tensor([1], [1, 1]), tensor([1, 2], [1, 1, 2])];
  const arena = gpu.arena(4096);
  const rms = { x: 0, gamma: 256, dy: 512, rows: 2, h: 2 };
  await gpu.sync();
  const maps = probe.maps;
  for (const call of [
    () => wgrad.rmsNorm(x, gamma),
    () => wgrad.rmsNormBackward(x, gamma, x),
    () => wgrad.rmsNormBackwardInput(x, gamma, x),
    () => wgrad.rmsNormBackwardGamma(x, gamma, x),
    () => wgrad.rmsNormBackwardBeta(x, gamma, x),
    () => wgrad.rope(cube, cos, sin, { headDim: 2 }),
    () => wgrad.ropeBackward(cube, cos, sin, { headDim: 2 }),
    () => wgrad.cumsum(x),
    () => wgrad.cumsumBackward(x),
    () => wgrad.gather(x, indices),
    () => wgrad.gatherBackward(x, indices, { axisDim: 2 }),
    () => arena.runRmsNormBackwardInput({ ...rms, dx: 1024 }),
    () => arena.runRmsNormBackwardGamma({ ...rms, dgamma: 1024 }),
    () => arena.runRmsNormBackwardBeta({ ...rms, dbeta: 1024 }),
    () => arena.runCumsumBackward({ dy: 0, dx: 1024, rows: 2, cols: 2 }),
  ]) {
    const submits = probe.submits;
    const pending = call();
    ok(pending instanceof Promise, `${call} gives no promise`);
    await pending;
    equal(probe.maps, maps, `maps after ${call}`);
    equal(probe.submits, submits + 1, `submits of ${call}`);
  }
  await wgrad.cumsum(x, { path: "host" });
  equal(probe.maps, maps + 1, "maps of the host path");
});

pageTest(
  "results are there for others on the device",
  async ({ wgrad, gpu, equal, close, f32 }) => {
    const x = gpu.tensor(f32(1, 10, 100), [3]);
    const { device } = gpu;
    equal(device.constructor.name, "GPUDevice");
    equal([gpu.device === device, x.buffer.constructor.name], [true, "GPUBuffer"]);
    const staging = device.createBuffer({
      size: 256,
      usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ,
    });
    const copy = (tensor) => {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(tensor.buffer, tensor.byteOffset, staging, 0, 12);
      device.queue.submit([encoder.finish()]);
    };
    for (const call of [
      () => wgrad.cumsum(x),
      // Behind another call, whose submit it shares.
      () => (wgrad.rmsNorm(x, x), wgrad.cumsum(x)),
      () => wgrad.cumsum(x, { path: "host" }),
    ]) {
      const y = await call();
      copy(y);
      await staging.mapAsync(GPUMapMode.READ);
      const values = new Float32Array(staging.getMappedRange().slice(0, 12));
      staging.unmap();
      close(values, [1, 11, 111]);
      // And the other way: what others put there is what an op sees.
      device.queue.writeBuffer(y.buffer, y.byteOffset, f32(2, 3, 4));
      close(await (await wgrad.cumsum(y)).read(), [2, 5, 9]);
    }
    // Another user's error scopes stay their own.
    device.pushErrorScope("validation");
    const y = await wgrad.cumsum(x);
    equal(await device.popErrorScope(), null);
    device.pushErrorScope("validation");
    device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
    const z = await wgrad.cumsum(y);
    equal((await device.popErrorScope()).constructor.name, "GPUValidationError");
    close(await z.read(), [1, 12, 123]);
  },
);

pageTest("writes and reads keep their order", async ({ wgrad, gpu, equal, f32 }) => {
  const x = gpu.tensor(f32(1, 1), [2]);
  const reads = [x.read()];
  const sums = [];
  for (let i = 2; i < 8; i++) {
    x.write(f32(i, i));
    sums.push(wgrad.cumsum(x));
    reads.push(x.read());
    x.write(f32(-i, -i));
    reads.push(x.read());
  }
  const values = (await Promise.all(reads)).map(([v]) => v);
  equal(values, [1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7]);
  const totals = await Promise.all(sums.map(async (sum) => (await (await sum).read())[1]));
  equal(totals, [4, 6, 8, 10, 12, 14]);
});

pageTest("two calls in one submit keep their own parameters", async (world) => {
  const { wgrad, gpu, probe, equal, close, f32 } = world;
  const x = gpu.tensor(f32(0.1, 0.2, 0.3, 0.4), [1, 4]);
  const ones = gpu.tensor(f32(1, 1, 1, 1), [4]);
  const alone = [];
  for (const eps of [1e-5, 1e-1]) {
    const { dx } = await wgrad.rmsNormBackward(x, ones, x, { eps });
    alone.push(await dx.read());
  }
  const submits = probe.submits;
  const both = await Promise.all(
    [1e-5, 1e-1].map((eps) => wgrad.rmsNormBackward(x, ones, x, { eps })),
  );
  equal(probe.submits, submits + 1);
  equal(await Promise.all(both.map(({ dx }) => dx.read())), alone);
});

pageTest("more calls at once than one submit holds", async ({ wgrad, gpu, probe, equal, f32 }) => {
  const x = gpu.tensor(f32(1, 1, 1), [3]);
  const submits = probe.submits;
  const calls = Array.from({ length: 700 }, (_, i) => {
    const exclusive = i % 2 === 1;
    return wgrad.cumsum(x, { exclusive, reverse: i % 3 === 0 });
  });
  const results = await Promise.all(calls);
  equal(probe.submits, submits + 3);
  const values = await Promise.all(results.map((result) => result.read()));
  values.forEach((got, i) => {
    const sums = i % 2 ? [0, 1, 2] : [1, 2, 3];
    equal(got, f32(i % 3 ? sums : sums.toReversed()), `call ${i}`);
  });
});

pageTest("selfTest", async ({ gpu, equal, ok }) => {
  const report = await gpu.selfTest();
  equal(
    report.results.filter(({ passed }) => !passed),
    [],
  );
  equal(report.passed, true);
  const names = ["rmsNorm", "rmsNormBackward", "rope", "ropeBackward", "cumsum", "cumsumBackward"];
  names.push("gather", "gatherBackward");
  names.push(...["Input", "Gamma", "Beta"].map((name) => `rmsNormBackward${name}`));
  for (const path of ["gpu", "host"]) {
    const ran = report.results.filter((result) => result.path === path).map(({ op }) => op);
    equal([...new Set(ran)].sort(), names.sort(), `ops on the ${path} path`);
  }
  for (const { op, path, error } of report.results) ok(error >= 0 && error <= 1, `${op}, ${path}`);
  equal(gpu.memory().used, 0, "used afterwards");
});

pageTest("gpu.info", async ({ gpu, equal, ok }) => {
  const { vendor, architecture, device, description, features, limits, fallback } = gpu.info;
  for (const text of [vendor, architecture, device, description]) equal(typeof text, "string");
  equal(vendor, gpu.device.adapterInfo.vendor);
  equal(features, [...gpu.device.features]);
  ok(limits.maxBufferSize === gpu.device.limits.maxBufferSize, "limits");
  ok(Object.values(limits).every(Number.isFinite) && Object.keys(limits).length > 20, "limits");
  equal(fallback, true, "the tests' adapter is a software one");
});
