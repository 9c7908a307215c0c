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
    /** How many of them have the label that arenas give. */
    blocks: 0,
  };
  globalThis.probe = probe;
  if (!globalThis.GPUDevice) return;

  const wrap = (type, name, around) => {
    const original = type.prototype[name];
    type.prototype[name] = function (...args) {
      return around.call(this, () => original.apply(this, args));
    };
  };
  /** Live buffers of each device. */
  const live = new Map();
  const count = (buffer, change) => {
    probe.buffers += change;
    probe.bytes += change * buffer.size;
    if (buffer.label === "wgrad.arena") probe.blocks += change;
  };
  wrap(GPUAdapter, "requestDevice", async function (request) {
    const device = await request();
    probe.devices.push(device);
    live.set(device, new Set());
    device.addEventListener("uncapturederror", ({ error }) => probe.uncaptured.push(error.message));
    return device;
  });
  wrap(GPUDevice, "createBuffer", function (create) {
    const buffer = create();
    live.get(this).add(buffer);
    probe.created++;
    count(buffer, 1);
    return buffer;
  });
  wrap(GPUBuffer, "destroy", function (destroy) {
    for (const buffers of live.values()) if (buffers.delete(this)) count(this, -1);
    return destroy();
  });
  wrap(GPUDevice, "destroy", function (destroy) {
    for (const buffer of live.get(this)) count(buffer, -1);
    live.get(this).clear();
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
