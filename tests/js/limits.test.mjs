// Sizes around WebGPU's limits and around 2^32: what is allowed works to its last element, and what
// is not is a `limit` error that says how much was needed and how much is allowed.

import { browserTests } from "./page.mjs";

const { pageTest } = browserTests();

/** Makes a tensor of `count` values, the last of them 7, and reads the ends through an op. */
async function ends({ wgrad, gpu, equal }, arena, count) {
  const data = new Float32Array(count);
  data[0] = 3;
  data[count - 1] = 7;
  const table = arena.upload(data, [count]);
  const indices = gpu.tensor(new Uint32Array([count - 1, 0, count >> 1]), [3]);
  const got = await wgrad.gather(table, indices);
  equal(await got.read(), new Float32Array([7, 3, 0]), `${count} values`);
  got.free();
  indices.free();
  return table;
}

// 132 images of 1,024,000 bytes are past the 128 MiB that WebGPU promises to bind at once.
for (const bytes of [134_144_000, 4 * 33_792_000, 146_847_752, 151_781_376]) {
  pageTest(
    `${bytes} bytes in one tensor`,
    async (world, ends, bytes) => {
      const { gpu, equal, throws } = world;
      const allowed = Math.min(
        gpu.info.limits.maxBufferSize,
        gpu.info.limits.maxStorageBufferBindingSize,
      );
      const arena = gpu.arena(bytes);
      if (bytes > allowed) {
        const want = { code: "limit", op: "upload", message: `${bytes} bytes .* ${allowed}` };
        throws(() => arena.upload(new Float32Array(bytes / 4), [bytes / 4]), want);
      } else {
        const tensor = await ends(world, arena, bytes / 4);
        const all = await tensor.read();
        equal([all.length, all[0], all.at(-1)], [bytes / 4, 3, 7]);
        // The next read is not in the way of a staging buffer that large.
        equal(await gpu.tensor(new Float32Array([5]), [1]).read(), new Float32Array([5]));
      }
      arena.destroy();
    },
    ends,
    bytes,
  );
}

pageTest(
  "default limits",
  async (world, ends) => {
    const { wgrad, equal, throws } = world;
    const gpu = await wgrad.Gpu.create({ limits: "default" });
    const { limits } = gpu.info;
    equal(limits.maxStorageBuffersPerShaderStage, 8);
    equal(limits.maxComputeInvocationsPerWorkgroup, 256);
    equal(limits.maxComputeWorkgroupStorageSize, 16384);
    equal(limits.maxStorageBufferBindingSize, 2 ** 27);
    equal(limits.maxBufferSize, 2 ** 28);
    const report = await gpu.selfTest();
    equal(
      report.results.filter(({ passed }) => !passed),
      [],
    );

    const arena = gpu.arena(2 ** 27);
    await ends({ ...world, gpu }, arena, 2 ** 25);
    const before = gpu.memory();
    const message = `134217732 bytes .*134217728`;
    throws(() => arena.alloc([2 ** 25 + 1]), { code: "limit", op: "alloc", message });
    equal(gpu.memory(), before);
    const need = { code: "limit", op: "arena", message: "268435457 bytes .* 268435456" };
    throws(() => gpu.arena(2 ** 28 + 1), need);
    gpu.destroy();
  },
  ends,
);

pageTest("the result of an op past the limits", async ({ wgrad, gpu, equal, rejects, f32 }) => {
  // 65536·16384 f32 are 2^32 bytes, which a 32-bit size would count as 0.
  const indices = gpu.tensor(new Uint32Array(16384), [16384]);
  const table = gpu.tensor(new Float32Array(65536), [1, 65536]);
  const before = gpu.memory();
  const wants = { code: "limit", message: "4294967296 bytes .* allows" };
  await rejects(wgrad.gather(table, indices), { ...wants, op: "gather" });
  const dy = gpu.tensor(f32(1), [1, 1]);
  const one = gpu.tensor(new Uint32Array(1), [1]);
  const backward = (axisDim) => wgrad.gatherBackward(dy, one, { axisDim });
  await rejects(backward(2 ** 30), { ...wants, op: "gatherBackward" });
  const less = { code: "limit", message: "4294967292 bytes .* allows" };
  await rejects(backward(2 ** 30 - 1), { ...less, op: "gatherBackward" });
  const most = { code: "limit", message: "17179869180 bytes .* allows" };
  await rejects(backward(2 ** 32 - 1), { ...most, op: "gatherBackward" });
  // More elements than a kernel can count, in a tensor that has none.
  const wide = gpu.tensor(new Float32Array(0), [2 ** 20, 0]);
  const many = gpu.tensor(new Float32Array(0), [0, 2 ** 20]);
  const none = gpu.tensor(new Uint32Array(0), [0]);
  await rejects(wgrad.gatherBackward(wide, none, { axis: 1, axisDim: 2 ** 20 }), {
    code: "limit",
    op: "gatherBackward",
    message: "1099511627776 elements",
  });
  await rejects(wgrad.gatherBackward(many, none, { axisDim: 2 ** 20 }), {
    code: "limit",
    op: "gatherBackward",
    message: "1099511627776 elements",
  });
  const made = [dy, one, wide, many, none];
  made.forEach((tensor) => tensor.free());
  equal(gpu.memory().used, before.used, "used");
  equal(gpu.memory().allocated, before.allocated, "allocated");
  [indices, table].forEach((tensor) => tensor.free());
});

pageTest("arenas past what the GPU has", async ({ wgrad, gpu, rejects, close, f32 }) => {
  // The GPU's answer to a new buffer comes later, and is the next read's.
  const pop = GPUDevice.prototype.popErrorScope;
  let left = 1;
  GPUDevice.prototype.popErrorScope = function () {
    const popped = pop.call(this);
    return left-- > 0 ? popped.then(() => new GPUOutOfMemoryError("none left")) : popped;
  };
  const arena = gpu.arena(1 << 20);
  const x = arena.upload(f32(1, 10, 100), [3]);
  GPUDevice.prototype.popErrorScope = pop;
  const message = "no room for a block of 1048576 bytes beside the \\d+ it holds";
  await rejects(x.read(), { code: "out-of-memory", message });
  // Once told, the error is gone; the rest still works.
  arena.destroy();
  const y = gpu.tensor(f32(1, 10, 100), [3]);
  close(await (await wgrad.cumsum(y)).read(), [1, 11, 111]);
});

pageTest("every buffer is made inside an error scope", async ({ wgrad, gpu, equal }) => {
  // Or running out of memory would be the console's to tell, and no call's.
  const { pushErrorScope, popErrorScope, createBuffer } = GPUDevice.prototype;
  let scopes = 0;
  const outside = [];
  Object.assign(GPUDevice.prototype, {
    pushErrorScope(filter) {
      if (filter === "out-of-memory") scopes++;
      return pushErrorScope.call(this, filter);
    },
    popErrorScope() {
      scopes = Math.max(0, scopes - 1);
      return popErrorScope.call(this);
    },
    createBuffer(descriptor) {
      if (!scopes) outside.push(`${descriptor.label}, ${descriptor.size} bytes`);
      return createBuffer.call(this, descriptor);
    },
  });
  const x = gpu.arena(1 << 20).upload(new Float32Array(100_000), [100_000]);
  await x.read();
  const y = await wgrad.cumsum(x, { path: "host" });
  await (await wgrad.cumsumBackward(y)).read();
  Object.assign(GPUDevice.prototype, { pushErrorScope, popErrorScope, createBuffer });
  equal(outside, []);
});

pageTest("an arena that may not grow", async ({ gpu, equal, throws }) => {
  const arena = gpu.arena(4096, { grow: false });
  const all = [arena.alloc([512]), arena.alloc([256])];
  equal(arena.memory(), { allocated: 4096, used: 3072, peak: 3072 });
  const message = "2048 bytes are needed; the arena has 1024 free, 1024 in one piece";
  throws(() => arena.alloc([512]), { code: "out-of-memory", op: "alloc", message });
  equal(arena.memory(), { allocated: 4096, used: 3072, peak: 3072 });
  all[0].free();
  equal(arena.alloc([512]).byteOffset, 0, "reused");
  throws(() => arena.alloc([2048]), { code: "out-of-memory", op: "alloc", message: "8192 bytes" });
});
