// Runs a table of bad calls in the page and tells what went otherwise than it must.

import { enter } from "../in-page.mjs";

/** The state that a bad call must leave as it was. */
const state = ({ gpu, probe }) => JSON.stringify([gpu.memory(), probe.submits, probe.created]);

/** What is wrong with the outcome of one bad call, if anything. */
async function fault(world, { run, sync = false, want }) {
  const before = state(world);
  let error;
  let thrown = true;
  try {
    const result = run();
    if (!(result instanceof Promise)) return "returned rather than throw";
    thrown = false;
    await result;
    return "settled rather than reject";
  } catch (e) {
    error = e;
  }
  const wrong = world.mismatch(error, want);
  if (wrong) return wrong;
  if (thrown !== sync) return thrown ? "threw rather than reject" : "rejected rather than throw";
  const after = state(world);
  return before === after ? undefined : `changed [memory, submits, buffers] ${before} to ${after}`;
}

/** For each table of bad-calls/`file`: its title, how many calls it made, and every fault. */
export async function check(file) {
  const world = await enter();
  const { wgrad, gpu, close, f32 } = world;
  world.other = await wgrad.Gpu.create();
  world.freed = gpu.tensor(f32(1), [1]);
  world.freed.free();
  const { tables } = await import(`./${file}.mjs`);
  const reports = [];
  for (const { title, cases } of tables(world)) {
    const faults = [];
    for (const bad of cases) {
      const wrong = await fault(world, bad);
      if (wrong) faults.push(`${bad.call}: ${wrong}`);
    }
    // Whatever came before, the module and the Gpu still work.
    const x = gpu.tensor(f32(1, 10, 100), [3]);
    const y = await wgrad.cumsumBackward(x);
    close(await y.read(), [111, 110, 100], `cumsumBackward after ${title}`);
    x.free();
    y.free();
    reports.push({ title, count: cases.length, faults });
  }
  return reports;
}
