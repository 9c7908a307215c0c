// The whole public interface as a strict TypeScript user meets it: `tsc -p tests/js` checks this
// file, nobody runs it. `@ts-expect-error` marks what the types must refuse.

import init, {
  Arena,
  cumsum,
  cumsumBackward,
  gather,
  gatherBackward,
  Gpu,
  initSync,
  rmsNorm,
  rmsNormBackward,
  rmsNormBackwardBeta,
  rmsNormBackwardGamma,
  rmsNormBackwardInput,
  rope,
  ropeBackward,
  Tensor,
} from "wgrad";
import type {
  ArenaOptions,
  CumsumOptions,
  Dtype,
  GatherBackwardOptions,
  GatherOptions,
  GpuInfo,
  GpuOptions,
  InitInput,
  InitOutput,
  LostInfo,
  Memory,
  OpOptions,
  OutOptions,
  Path,
  RmsNormBackwardOptions,
  RmsNormGradient,
  RmsNormGradientOptions,
  RmsNormOptions,
  RopeOptions,
  RunCumsumBackward,
  RunGatherBackward,
  RunRmsNormBackward,
  RunRopeBackward,
  SelfTestReport,
  SelfTestResult,
  SyncInitInput,
  TensorData,
  WgradError,
  WgradErrorCode,
} from "wgrad";

/** Fails to compile unless both types are the same, `any` included. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_proof: Same<A, B>): void => {};

export async function starting(bytes: ArrayBuffer, module: WebAssembly.Module): Promise<Gpu> {
  await init();
  await init("wgrad_bg.wasm");
  await init(new URL("wgrad_bg.wasm", "https://example.org"));
  await init(new Request("wgrad_bg.wasm"));
  await init(fetch("wgrad_bg.wasm"));
  await init(bytes);
  await init(new Uint8Array(bytes));
  await init(module);
  await init({ module_or_path: "wgrad_bg.wasm" });
  await init({ module_or_path: fetch("wgrad_bg.wasm") });
  const output: InitOutput = initSync({ module });
  same<typeof output.memory, WebAssembly.Memory>(true);
  const input: InitInput = module;
  const sync: SyncInitInput = bytes;
  await init(input);
  initSync(sync);

  const options: GpuOptions = { powerPreference: "high-performance", limits: "adapter" };
  await Gpu.create();
  await Gpu.create({});
  await Gpu.create({ powerPreference: "low-power", limits: "default" });
  // @ts-expect-error: no such limits
  await Gpu.create({ limits: "all" });
  // @ts-expect-error: no such option
  await Gpu.create({ forceFallbackAdapter: true });
  // @ts-expect-error: made by create() only
  new Gpu();
  // @ts-expect-error: made by a Gpu only
  new Arena();
  // @ts-expect-error: made by an Arena only
  new Tensor();
  return Gpu.create(options);
}

export async function aboutGpu(gpu: Gpu): Promise<void> {
  const info: GpuInfo = gpu.info;
  const limit: number | undefined = info.limits["maxBufferSize"];
  // @ts-expect-error: a limit need not be there
  const sure: number = info.limits["maxBufferSize"];
  const texts: string[] = [info.vendor, info.architecture, info.device, info.description];
  const timed: boolean = info.features.includes("timestamp-query") && !info.fallback;
  // @ts-expect-error: read-only
  gpu.device = gpu.device;
  const encoder: GPUCommandEncoder = gpu.device.createCommandEncoder();
  const memory: Memory = gpu.memory();
  const bytes: number = memory.allocated + memory.used + memory.peak;
  same<Awaited<ReturnType<Gpu["sync"]>>, void>(true);
  await gpu.sync();
  const lost: LostInfo = await gpu.lost;
  if (lost.reason === "destroyed") console.log(lost.message);
  // @ts-expect-error: no such reason
  if (lost.reason === "gone") return;
  const report: SelfTestReport = await gpu.selfTest();
  const failed: SelfTestResult[] = report.passed ? [] : report.results.filter((r) => !r.passed);
  for (const { op, path, error, message } of failed) {
    same<typeof path, Path>(true);
    same<typeof message, string | undefined>(true);
    console.log(`${op} on the ${path} path is off by ${error.toFixed(2)}`, message);
  }
  console.log(limit, sure, texts, timed, encoder, bytes);
  gpu.destroy();
  gpu.free();
  gpu[Symbol.dispose]();
}

export async function arenasAndTensors(gpu: Gpu, data: readonly number[]): Promise<number[]> {
  const fixed: ArenaOptions = { grow: false };
  using arena: Arena = gpu.arena(64 << 20);
  gpu.arena(4096, fixed);
  // @ts-expect-error: bytes are needed
  gpu.arena();
  using x: Tensor = arena.upload(new Float32Array(data), [2, data.length / 2]);
  const shape: readonly number[] = x.shape;
  const y = arena.alloc(shape);
  const dtype: Dtype = "u32";
  arena.alloc([3], dtype);
  // @ts-expect-error: no such type
  arena.alloc([3], "f16");
  // @ts-expect-error: a shape is an array
  arena.alloc(3);
  const view = arena.at(256, [2, 2], "i32");
  const indices = gpu.tensor(new Uint32Array([1, 0]), [2]);
  gpu.tensor(new Int32Array(1), []);
  // @ts-expect-error: not a type that tensors have
  gpu.tensor(new Float64Array(1), [1]);
  // @ts-expect-error: not a typed array
  gpu.tensor([1, 2], [2]);
  // @ts-expect-error: the shape is needed
  gpu.tensor(new Float32Array(1));
  const buffer: GPUBuffer = y.buffer;
  const facts: [number, number, boolean] = [y.length, y.byteOffset, y.disposed];
  same<typeof view.dtype, Dtype>(true);
  // @ts-expect-error: read-only
  view.dtype = "f32";
  y.write(new Float32Array(4));
  const values: TensorData = await x.read();
  const first: number | undefined = values[0];
  // @ts-expect-error: may be undefined
  const sure: number = values[0];
  if (values instanceof Float32Array) values.set([1]);
  arena.reset();
  same<ReturnType<Arena["memory"]>, Memory>(true);
  console.log(buffer, facts, first, sure);
  indices.free();
  indices[Symbol.dispose]();
  arena.destroy();
  return [...values];
}

export async function ops(
  x: Tensor,
  gamma: Tensor,
  dy: Tensor,
  indices: Tensor,
): Promise<Tensor[]> {
  const path: OpOptions = { path: "host" };
  const out: OutOptions = { out: dy, ...path };
  const norm: RmsNormOptions = { beta: gamma, eps: 1e-6, ...out };
  const gradient: RmsNormGradientOptions = { eps: 1e-6, ...out };
  const turn: RopeOptions = { headDim: 64, nRot: 32, style: "gptj", ...out };
  const scan: CumsumOptions = { axis: -1, exclusive: true, reverse: false, ...out };
  const pick: GatherOptions = { axis: 1, ...out };
  const scatter: GatherBackwardOptions = { axisDim: 50_257, ...pick };
  const results: Promise<Tensor>[] = [
    rmsNorm(x, gamma),
    rmsNorm(x, gamma, norm),
    rmsNormBackwardInput(x, gamma, dy),
    rmsNormBackwardGamma(x, gamma, dy, gradient),
    rmsNormBackwardBeta(x, gamma, dy, { eps: 0 }),
    rope(x, gamma, gamma, { headDim: 64 }),
    ropeBackward(dy, gamma, gamma, turn),
    cumsum(x),
    cumsumBackward(dy, scan),
    gather(x, indices),
    gather(x, indices, pick),
    gatherBackward(dy, indices, scatter),
  ];
  // @ts-expect-error: gamma is needed
  rmsNorm(x);
  // @ts-expect-error: an operand is a Tensor
  rmsNorm(x, new Float32Array(4));
  // @ts-expect-error: beta is an option
  rmsNorm(x, gamma, dy);
  // @ts-expect-error: no such option
  rmsNorm(x, gamma, { epsilon: 1e-6 });
  // @ts-expect-error: backwards do not take beta
  rmsNormBackwardInput(x, gamma, dy, { beta: gamma });
  // @ts-expect-error: headDim is needed
  rope(x, gamma, gamma, {});
  // @ts-expect-error: options are needed
  ropeBackward(x, gamma, gamma);
  // @ts-expect-error: no such style
  rope(x, gamma, gamma, { headDim: 64, style: "llama" });
  // @ts-expect-error: a flag is a boolean
  cumsum(x, { exclusive: 1 });
  // @ts-expect-error: axisDim is needed
  gatherBackward(dy, indices, { axis: 0 });
  // @ts-expect-error: no such path
  cumsum(x, { path: "cpu" });
  return Promise.all(results);
}

export async function wanted(x: Tensor, gamma: Tensor, dy: Tensor): Promise<Tensor[]> {
  const all = await rmsNormBackward(x, gamma, dy);
  same<typeof all, Record<RmsNormGradient, Tensor>>(true);
  const { dx, dgamma, dbeta } = await rmsNormBackward(x, gamma, dy, { eps: 1e-5, path: "gpu" });
  const one = await rmsNormBackward(x, gamma, dy, { wants: ["dx"] });
  same<typeof one, Record<"dx", Tensor>>(true);
  // @ts-expect-error: not wanted
  one.dgamma.free();
  const two = await rmsNormBackward(x, gamma, dy, { wants: ["dgamma", "dbeta"] as const });
  // @ts-expect-error: not wanted
  two.dx.free();
  // @ts-expect-error: no such gradient
  await rmsNormBackward(x, gamma, dy, { wants: ["dw"] });
  const places = { dx: dy, dbeta: gamma };
  same<Awaited<ReturnType<typeof rmsNormBackward>>, Record<RmsNormGradient, Tensor>>(true);
  await rmsNormBackward(x, gamma, dy, { out: places });
  // @ts-expect-error: three results have no one place to go
  await rmsNormBackward(x, gamma, dy, { out: dy });
  // @ts-expect-error: not wanted
  await rmsNormBackward(x, gamma, dy, { wants: ["dx"], out: { dgamma: gamma } });
  // What is only known later may be anything.
  const later: RmsNormBackwardOptions = { wants: Math.random() < 0.5 ? ["dx"] : ["dbeta"] };
  const some = await rmsNormBackward(x, gamma, dy, later);
  return [dx, dgamma, dbeta, one.dx, two.dgamma, two.dbeta, some.dx];
}

export async function offsets(arena: Arena): Promise<void> {
  const rms: RunRmsNormBackward = { x: 0, gamma: 256, dy: 512, rows: 2, h: 4 };
  const rope: RunRopeBackward = {
    ...{ dy: 0, cos: 256, sin: 512, dx: 768, path: "host" },
    ...{ batch: 1, seq: 2, hidden: 12, headDim: 6, nRot: 4, cosLen: 4 },
  };
  const scan: RunCumsumBackward = { dy: 0, dx: 256, rows: 2, cols: 3, exclusive: true };
  const counts = { outer: 1, axisDim: 4, numIdx: 3, trailing: 2 };
  const scatter: RunGatherBackward = { dy: 0, indices: 256, dst: 768, ...counts };
  const done: void[] = await Promise.all([
    arena.runRmsNormBackwardInput({ ...rms, dx: 768, path: "gpu" }),
    arena.runRmsNormBackwardGamma({ ...rms, dgamma: 768, beta: 0, eps: 1e-6 }),
    arena.runRmsNormBackwardBeta({ ...rms, dbeta: 768 }),
    arena.runRopeBackward(rope),
    arena.runCumsumBackward(scan),
    arena.runGatherBackward(scatter),
  ]);
  // @ts-expect-error: dx is needed
  await arena.runRmsNormBackwardInput(rms);
  // @ts-expect-error: no such operand
  await arena.runCumsumBackward({ ...scan, dst: 0 });
  // @ts-expect-error: operands are needed
  await arena.runGatherBackward();
  console.log(done);
}

/** Errors are told apart by name and then by code. */
export function describe(error: unknown): string {
  const isWgrad = (e: unknown): e is WgradError => e instanceof Error && e.name === "WgradError";
  if (!isWgrad(error)) return String(error);
  same<typeof error.code, WgradErrorCode>(true);
  switch (error.code) {
    case "device-lost":
    case "disposed":
      return "make a new Gpu";
    case "unsupported":
      return error.message;
    // @ts-expect-error: no such code
    case "lost":
      return "never";
    default:
      same<typeof error.operand, string | undefined>(true);
      return `${error.op ?? "wgrad"}: ${error.operand ?? ""}`;
  }
}
