// Runs in the page before anything else: counts what the library asks of WebGPU and keeps the
// errors that nobody caught. The function must stand alone: it travels to the page as text.

export function installProbe() {
  const probe = {
    /** Errors that no error scope caught. */
    uncaptured: [],
    devices: [],
    submits: 0,
    maps: 0,
    /** Buffers, and their bytes, that were created and not destroyed. */
    buffers: 0,
    bytes: 0,
    created: 0,
  };
  globalThis.probe = probe;
  if (!globalThis.GPUDevice) return;

  const wrap = (type, name, around) => {
    const original = type.prototype[name];
    type.prototype[name] = function (...args) {
      return around.call(this, () => original.apply(this, args));
    };
  };
  const live = new WeakSet();
  wrap(GPUAdapter, "requestDevice", async function (request) {
    const device = await request();
    probe.devices.push(device);
    device.addEventListener("uncapturederror", ({ error }) => probe.uncaptured.push(error.message));
    return device;
  });
  wrap(GPUDevice, "createBuffer", function (create) {
    const buffer = create();
    live.add(buffer);
    probe.created++;
    probe.buffers++;
    probe.bytes += buffer.size;
    return buffer;
  });
  wrap(GPUBuffer, "destroy", function (destroy) {
    if (live.delete(this)) {
      probe.buffers--;
      probe.bytes -= this.size;
    }
    return destroy();
  });
  wrap(GPUBuffer, "mapAsync", function (map) {
    probe.maps++;
    return map();
  });
  wrap(GPUQueue, "submit", function (submit) {
    probe.submits++;
    return submit();
  });
}
