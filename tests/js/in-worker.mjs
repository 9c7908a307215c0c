// The module in a worker: answers each message with the results of a few calls. A dedicated worker
// is the port itself; a shared one gets a port for each page.

import init, { cumsumBackward, Gpu, rmsNormBackward } from "/pkg/wgrad.js";

async function work({ data }) {
  await init();
  using gpu = await Gpu.create();
  const dy = gpu.tensor(new Float32Array(data), [data.length]);
  const dx = await cumsumBackward(dy);
  const host = await cumsumBackward(dy, { path: "host" });
  const { dbeta } = await rmsNormBackward(dy, dy, dy, { wants: ["dbeta"] });
  const values = await Promise.all([dx, host, dbeta].map((tensor) => tensor.read()));
  const error = await cumsumBackward(data).catch(({ name, code }) => ({ name, code }));
  const { passed } = await gpu.selfTest();
  return { values, error, passed, vendor: gpu.info.vendor };
}

const listen = (port) => {
  port.onmessage = async (event) => {
    try {
      const answer = await work(event);
      port.postMessage(
        answer,
        answer.values.map(({ buffer }) => buffer),
      );
    } catch (error) {
      port.postMessage({ failed: String(error) });
    }
  };
};

if (globalThis.SharedWorkerGlobalScope) globalThis.onconnect = ({ ports }) => listen(ports[0]);
else listen(globalThis);
