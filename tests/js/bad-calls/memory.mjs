// Wrong arguments of Gpu, Arena and Tensor methods. All of these throw at once.

import { notCounts, unreadable } from "./world.mjs";

const { undefined: _, "over 2**53": __, ...junk } = notCounts;

function shapes() {
  const hole = [2, 2];
  delete hole[0];
  const getter = [1];
  Object.defineProperty(getter, 0, {
    get() {
      throw new RangeError("not yours");
    },
  });
  const revoked = Proxy.revocable([], {});
  revoked.revoke();
  const whole = "shape must be an integer from 0 to 4294967295, got";
  const array = "shape must be an array of integers, got";
  return [
    ...[undefined, null, 4, "4", {}, new Uint32Array([4]), { length: 1, 0: 4 }, new Set([4])].map(
      (shape) => [shape, array],
    ),
    ...[[-1], [0.5], [NaN], [Infinity], [2 ** 32], [1e300], ["4"], [null], [[4]], [4n]].map(
      (shape) => [shape, whole],
    ),
    [hole, `${whole} undefined`],
    [[2, undefined], `${whole} undefined`],
    [getter, "shape cannot be read"],
    [revoked.proxy, "shape cannot be read"],
  ];
}

/** Arguments for a shape and how big its tensor would be, all past what a device can have. */
const huge = [
  [[65536, 16384], "4294967296 bytes .* allows \\d+"],
  [[65536 * 16384 - 1], "4294967292 bytes .* allows \\d+"],
  [[65536, 65536], "17179869184 bytes .* allows \\d+"],
  [[2 ** 31], "8589934592 bytes .* allows \\d+"],
  [[2 ** 32 - 1, 2 ** 19], "bytes .* allows \\d+"],
  [[2 ** 32 - 1, 2 ** 32 - 1], "more elements than can be counted"],
  [[2 ** 32 - 1, 2 ** 32 - 1, 2 ** 32 - 1], "more elements than can be counted"],
];

export function tables(world) {
  const { gpu, f32 } = world;
  const arena = gpu.arena(65536);
  arena.at(0, [1]);
  const list = [];
  const group = (op, operand) => {
    const cases = [];
    list.push({ title: op, cases });
    // A limit of the device is no fault of one operand: null there.
    return (run, code, message, at = operand) => {
      const want = { code, op, operand: at ?? undefined, message };
      cases.push({ call: `${run}, /${message}/`, run, sync: true, want });
    };
  };

  const make = group("arena", "bytes");
  for (const value of [...Object.values(junk), undefined, 0, 2 ** 53 + 2]) {
    make(() => gpu.arena(value), "argument", "bytes must be an integer from 1 to");
  }
  for (const value of [2 ** 40, 2 ** 53, 2 ** 32]) {
    make(() => gpu.arena(value), "limit", `${value} bytes .* maxBufferSize is \\d+`, null);
  }
  make(() => gpu.arena(256, { grows: false }), "argument", "grows is not an option", "grows");
  make(() => gpu.arena(256, { grow: 0 }), "argument", "must be true or false, got 0", "grow");
  for (const [value, message] of Object.values(unreadable())) {
    make(() => gpu.arena(256, value), "argument", message, "options");
  }

  const alloc = group("alloc", "shape");
  const upload = group("upload", "shape");
  const tensor = group("tensor", "shape");
  const at = group("at", "shape");
  for (const [shape, message] of shapes()) {
    alloc(() => arena.alloc(shape), "shape", message);
    upload(() => arena.upload(f32(1), shape), "shape", message);
    tensor(() => gpu.tensor(f32(1), shape), "shape", message);
    at(() => arena.at(0, shape), "shape", message);
  }
  for (const [shape, message] of huge) {
    const counted = message.startsWith("more") ? "shape" : null;
    alloc(() => arena.alloc(shape), "limit", message, counted);
    const data = counted ? ["limit", message, "shape"] : ["shape", "data must hold", "data"];
    upload(() => arena.upload(f32(1), shape), ...data);
    tensor(() => gpu.tensor(f32(1), shape), ...data);
    const view = counted ? ["limit", message, "shape"] : ["argument", "do not fit", "byteOffset"];
    at(() => arena.at(0, shape), ...view);
  }
  for (const dtype of [null, "f64", "F32", "", 1, {}, [], Symbol("f32")]) {
    const want = ["dtype", 'dtype must be "f32", "u32" or "i32", got', "dtype"];
    alloc(() => arena.alloc([1], dtype), ...want);
    at(() => arena.at(0, [1], dtype), ...want);
  }

  const written = arena.upload(f32(1, 2, 3, 4), [4]);
  const write = group("write", "data");
  const noData = [undefined, null, 4, "4", [1, 2, 3, 4], {}, new Float64Array(4)];
  noData.push(new Uint8Array(16), new ArrayBuffer(16), new DataView(new ArrayBuffer(16)));
  for (const data of noData) {
    const want = ["dtype", "data must be a Float32Array, Uint32Array or Int32Array, got", "data"];
    upload(() => arena.upload(data, [4]), ...want);
    tensor(() => gpu.tensor(data, [4]), ...want);
    write(() => written.write(data), ...want);
  }
  for (const length of [0, 3, 5]) {
    const data = new Float32Array(length);
    const want = ["shape", `data must hold 4 values for shape \\[4\\], got ${length}`, "data"];
    upload(() => arena.upload(data, [4]), ...want);
    upload(() => arena.upload(data, [2, 2]), want[0], "for shape \\[2, 2\\]", "data");
    tensor(() => gpu.tensor(data, [4]), ...want);
    write(() => written.write(data), ...want);
  }
  const moved = f32(1, 2, 3, 4);
  structuredClone(moved, { transfer: [moved.buffer] });
  write(() => written.write(moved), "shape", "data must hold 4 values .*, got 0");
  write(
    () => written.write(new Int32Array(4)),
    "dtype",
    "data must be f32 like the tensor, got i32",
  );

  for (const offset of [...Object.values(junk), undefined, 2 ** 53 + 2]) {
    at(
      () => arena.at(offset, [1]),
      "argument",
      "byteOffset must be an integer from 0",
      "byteOffset",
    );
  }
  for (const offset of [1, 4, 255, 65535, 2 ** 53 - 1]) {
    at(() => arena.at(offset, [1]), "argument", "must be a multiple of 256, got", "byteOffset");
  }
  for (const [offset, length] of [
    [65536, 1],
    [65536 - 256, 65],
    [0, 16385],
    [2 ** 53, 1],
    [65536, 0],
  ]) {
    at(() => arena.at(offset, [length]), "argument", "do not fit the arena's 65536", "byteOffset");
  }

  const gone = arena.upload(f32(1), [1]);
  gone.free();
  for (const [op, run] of Object.entries({
    byteOffset: () => gone.byteOffset,
    buffer: () => gone.buffer,
    write: () => gone.write(f32(1)),
  })) {
    group(op, "tensor")(run, "disposed", "tensor was freed");
  }
  list.push({
    title: "read",
    cases: [
      {
        call: "read of a freed tensor",
        run: () => gone.read(),
        want: { code: "disposed", op: "read", operand: "tensor", message: "tensor was freed" },
      },
    ],
  });
  return list;
}
