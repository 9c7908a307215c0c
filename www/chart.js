// The loss, as it comes in: a faint line as measured, a strong one smoothed, and the loss of a
// model that knows nothing.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** At so many points (an even number), neighbours are merged: a long run stays quick to draw. */
const MAX_POINTS = 800;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
const font = "12px system-ui, sans-serif";

export class LossChart {
  #element;
  #plot;
  #steps = [];
  #losses = [];
  #smoothed = [];
  #uniform;
  /** Losses that make the next point, once there are as many as in the points so far. */
  #next = [];
  #merged = 1;
  /** The smoothed loss, and the step it is of. */
  #level;
  #at = 0;

  /** @param {HTMLElement} element that the chart fills */
  constructor(element) {
    this.#element = element;
    this.#make();
    new ResizeObserver(() => this.#plot.setSize(this.#size())).observe(element);
    // A canvas knows nothing of style sheets, so it is drawn again in the other scheme's colors.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.destroy();
      this.#make();
    });
  }

  #size() {
    return { width: this.#element.clientWidth, height: this.#element.clientHeight };
  }

  #make() {
    const axis = {
      stroke: color("muted"),
      font,
      grid: { stroke: color("line"), width: 1 },
      ticks: { show: false },
    };
    const points = { show: false };
    const options = {
      ...this.#size(),
      legend: { show: false },
      cursor: { show: false },
      padding: [12, 12, 0, 0],
      scales: {
        x: { time: false, range: (_, __, last) => [0, Math.max(last ?? 0, 50)] },
        y: { range: (_, low, high) => this.#range(low, high) },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 32 },
        { ...axis, size: 40 },
      ],
      series: [
        {},
        { stroke: color("faint"), width: 1, points },
        { stroke: color("accent"), width: 2.5, points },
        { stroke: color("muted"), width: 1.25, dash: [5, 5], points },
      ],
    };
    this.#plot = new uPlot(options, this.#data(), this.#element);
  }

  /** Room for what is there, down to a whole or half nat below it. */
  #range(low, high) {
    if (low === null) return [0, 5];
    return [Math.floor(2 * low - 0.3) / 2, Math.ceil(2 * high + 0.3) / 2];
  }

  #data() {
    // The baseline also spans the part of the axis that the run has not reached.
    const steps = this.#steps.length < 2 ? [...this.#steps, 50] : this.#steps;
    return [steps, this.#losses, this.#smoothed, steps.map(() => this.#uniform)];
  }

  /** @param {number} uniform the loss of a uniform guess */
  clear(uniform) {
    this.#steps = [];
    this.#losses = [];
    this.#smoothed = [];
    this.#next = [];
    this.#merged = 1;
    this.#level = undefined;
    this.#at = 0;
    this.#uniform = uniform;
    this.#plot.setData(this.#data());
  }

  /** Adds the mean loss of the steps up to `step`. */
  add(step, loss) {
    // Over few steps while the loss falls fast, over more as it levels off.
    const weight = 1 - Math.exp((this.#at - step) / (2 + step / 12));
    this.#level ??= loss;
    this.#level += weight * (loss - this.#level);
    this.#at = step;
    this.#next.push(loss);
    if (this.#next.length < this.#merged) return;
    this.#steps.push(step);
    this.#losses.push(this.#next.reduce((sum, loss) => sum + loss) / this.#merged);
    this.#smoothed.push(this.#level);
    this.#next = [];
    if (this.#steps.length >= MAX_POINTS) this.#thin();
    this.#plot.setData(this.#data());
  }

  /** Makes one point of each two. */
  #thin() {
    const second = (_, i) => i % 2;
    this.#losses = this.#losses.map((loss, i) => (loss + this.#losses[i - 1]) / 2).filter(second);
    this.#smoothed = this.#smoothed.filter(second);
    this.#steps = this.#steps.filter(second);
    this.#merged *= 2;
  }
}
