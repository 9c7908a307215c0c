import { browserTests } from "./page.mjs";
const { pageTest } = browserTests();
pageTest("explore", async ({ wgrad, gpu, equal, close, f32, probe }) => {
  const x = gpu.tensor(f32(1, 10, 100), [3]);
  const y = await wgrad.cumsumBackward(x);
  close(await y.read(), [111, 110, 100]);
  const out = {};
  for (const [n, f] of Object.entries({
    undef: () => wgrad.cumsum(undefined), nul: () => wgrad.cumsum(null), nulproto: () => wgrad.cumsum(Object.create(null)),
    sym: () => wgrad.cumsum(Symbol("a")), big: () => wgrad.cumsum(10n), opts: () => wgrad.cumsum(x, Object.create(null)),
    newt: () => wgrad.cumsum(new wgrad.Tensor()), fn: () => wgrad.cumsum(() => 1), cls: () => wgrad.cumsum(class A {}),
    at: () => gpu.tensor(f32(1)), ax: () => wgrad.cumsum(x, {axis: undefined}), hole: () => gpu.tensor(f32(1), [,1]),
    throwing: () => wgrad.cumsum(x, { get axis() { throw new Error("boo") } }),
    proxy: () => wgrad.cumsum(x, new Proxy({}, { ownKeys() { throw new Error("keys") } })),
    posopt: () => wgrad.rmsNorm(x, x, x),
    info: () => JSON.stringify(gpu.info),
  })) {
    try { const r = f(); try { out[n] = ["resolved", String(await r)]; } catch (e) { out[n] = ["rejects", e.name, e.message, {...e}]; } }
    catch (e) { out[n] = ["throws", e.name, e.message, {...e}]; }
  }
  const { buffers, bytes, submits, maps, created } = probe;
  console.log(JSON.stringify({out, p: { buffers, bytes, submits, maps, created }}, null, 1));
});
