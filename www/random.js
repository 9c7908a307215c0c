// Random numbers from a seed: a run can be repeated bit by bit, since wgrad's sums have a fixed
// order too.

/** @returns {() => number} uniform in [0, 1) (Tommy Ettinger's mulberry32) */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Of mean 0 and deviation 1. */
export function randomNormal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** An index, each with the probability that softmax(logits / temperature) gives it. */
export function randomChoice(random, logits, temperature) {
  const largest = Math.max(...logits);
  const weights = Array.from(logits, (logit) => Math.exp((logit - largest) / temperature));
  let rest = random() * weights.reduce((sum, weight) => sum + weight);
  const found = weights.findIndex((weight) => (rest -= weight) < 0);
  // Rounding may leave a little rest at the end; the likeliest is then as good as any.
  return found < 0 ? logits.indexOf(largest) : found;
}
