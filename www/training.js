// The training loop. It keeps the GPU busy and yet stops within a fraction of a second: it queues
// a few steps, then waits for the few before them to be done.

import { Model, sizes } from "./model.js";
import { randomBatch, Vocabulary } from "./text.js";
import { randomChoice, seeded } from "./random.js";

const SEED = 1;
/** How much work to queue at a time: small enough to pause soon, large enough to cost nothing. */
const CHUNK_SECONDS = 0.1;
const MAX_CHUNK = 50;
/** What the speed is averaged over. */
const SPEED_SECONDS = 2;
const SAMPLE_CHARACTERS = 160;
/** Of the untrained model, whose gibberish only shows where it began. */
const FIRST_CHARACTERS = 60;
const TEMPERATURE = 0.7;
/** Training takes so many times as long as the sample before it, and so many seconds at least. */
const SAMPLE_SHARE = 5;
const SAMPLE_SECONDS = 5;

const now = () => performance.now() / 1000;

export class Training {
  #gpu;
  #report;
  #random = seeded(SEED);
  #vocabulary;
  #text;
  #prompt;
  #running = false;
  #ended = Promise.resolve();
  #chunk = 1;
  /** The steps that are queued but not known to be done. */
  #pending;
  #measuredAt = 0;
  #stepsPerSecond = 0;
  #nextSample = 0;

  /**
   * @param {import("wgrad").Gpu} gpu
   * @param {{ text: string, prompt: string }} source what to learn, and how samples begin
   * @param {(message: object) => void} report tells the page
   */
  constructor(gpu, { text, prompt }, report) {
    this.#gpu = gpu;
    this.#report = report;
    this.#prompt = prompt;
    this.#vocabulary = new Vocabulary(text);
    this.#text = this.#vocabulary.encode(text);
    const size = gpu.info.fallback ? sizes.small : sizes.large;
    this.model = new Model(gpu, { ...size, classes: this.#vocabulary.size }, this.#random);
    report({
      type: "model",
      parameters: this.model.parameters.count,
      uniform: Math.log(this.#vocabulary.size),
      ...size,
    });
  }

  /** Starts or goes on. Rejects if the GPU fails; settles once paused. */
  start() {
    if (!this.#running) {
      this.#running = true;
      this.#ended = this.#loop();
    }
    return this.#ended;
  }

  /** Settles when nothing is in flight. */
  async pause() {
    this.#running = false;
    await this.#ended;
  }

  async destroy() {
    // A loop that failed has reported that to who started it.
    await this.pause().catch(() => {});
    this.model.destroy();
  }

  async #loop() {
    try {
      this.#measuredAt = now();
      while (this.#running) {
        if (now() >= this.#nextSample) await this.#sample();
        else await this.#train();
      }
      await this.#settle();
    } finally {
      this.#running = false;
    }
  }

  async #train() {
    const { batch, context } = this.model.config;
    for (let i = 0; i < this.#chunk; i++) {
      await this.model.train(randomBatch(this.#random, this.#text, batch, context));
    }
    const loss = this.model.takeLoss();
    // It is awaited below, but only in the next round; until then a failure is not unhandled.
    loss.catch(() => {});
    const next = { step: this.model.step, steps: this.#chunk, loss };
    await this.#settle();
    this.#pending = next;
  }

  /** Waits for the steps in flight and tells of them. */
  async #settle() {
    if (!this.#pending) return;
    const { step, steps, loss: promise } = this.#pending;
    this.#pending = undefined;
    const loss = await promise;
    const { batch, context } = this.model.config;
    const stepsPerSecond = this.#measure(steps);
    this.#chunk = Math.min(Math.max(Math.round(stepsPerSecond * CHUNK_SECONDS), 1), MAX_CHUNK);
    this.#report({
      type: "progress",
      step,
      loss,
      stepsPerSecond,
      tokensPerSecond: stepsPerSecond * batch * context,
      memory: this.#gpu.memory().allocated,
    });
  }

  /** The speed of late, after so many more steps. */
  #measure(steps) {
    const seconds = now() - this.#measuredAt;
    this.#measuredAt += seconds;
    const weight = this.#stepsPerSecond ? 1 - Math.exp(-seconds / SPEED_SECONDS) : 1;
    this.#stepsPerSecond += weight * (steps / seconds - this.#stepsPerSecond);
    return this.#stepsPerSecond;
  }

  async #sample() {
    await this.#settle();
    const began = now();
    const { step } = this.model;
    const { characters } = this.#vocabulary;
    const tokens = Array.from(this.#vocabulary.encode(this.#prompt));
    const length = step ? SAMPLE_CHARACTERS : FIRST_CHARACTERS;
    let text = "";
    for (let i = 0; i < length && this.#running; i++) {
      const logits = await this.model.predict(tokens);
      const token = randomChoice(this.#random, logits, TEMPERATURE);
      tokens.push(token);
      text += characters[token];
      this.#report({ type: "sample", step, prompt: this.#prompt, text });
    }
    this.#measuredAt = now();
    const pause = Math.max(SAMPLE_SHARE * (now() - began), SAMPLE_SECONDS);
    this.#nextSample = now() + pause;
  }
}
