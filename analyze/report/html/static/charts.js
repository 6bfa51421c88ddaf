// The histogram of launches, over what is in view on the timeline; and the dots of the roofline.

import { firstAbove, nodeName, stackOf } from "./data.js";
import { element, plainTable } from "./draw.js";
import { count, duration } from "./units.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 180, LEFT = 44, BOTTOM = 30;

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, string|number>} attributes
 * @param {string} [text]
 */
function svg(tag, attributes, text) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * The values of what is in view.
 * @param {Timeline} timeline
 * @param {string} what
 */
function valuesInView(timeline, what) {
  const found = [], { start, end } = timeline.view;
  for (const { streams } of timeline.scene.devices) {
    for (const stream of streams) {
      for (let i = firstAbove(stream.start, start); i < stream.start.length && stream.start[i] < end; i++) {
        if (stream.count[i] > 1) continue;
        if (what === "duration") found.push(stream.dur[i]);
        else if (stream.thread[i] >= 0) found.push(what === "call" ? stream.call[i] : stream.lag[i]);
      }
    }
  }
  return found.sort((a, b) => a - b);
}

/** Edges 1, 2, 5, 10 ... in ns around the values. @param {number[]} values */
function edges(values) {
  const found = [], low = Math.max(values[0], 100), high = Math.max(values[values.length - 1], 1000);
  for (let power = 100; power <= high * 10; power *= 10) {
    for (const factor of [1, 2, 5]) {
      const edge = power * factor;
      if (edge * 2.5 >= low && edge <= high * 2.5) found.push(edge);
    }
  }
  return found;
}

/**
 * Draw the histogram, and its table.
 * @param {Timeline} timeline
 */
export function drawHistogram(timeline) {
  const plot = /** @type {HTMLElement} */ (document.getElementById("histogram-plot"));
  const what = /** @type {HTMLSelectElement} */ (document.getElementById("histogram-what")).value;
  const values = valuesInView(timeline, what);
  plot.replaceChildren();
  const table = /** @type {HTMLElement} */ (document.querySelector("#histogram-table .scroll"));
  table.replaceChildren();
  if (!values.length) {
    plot.append(element("p", "Nothing in view has such a time.", "quiet"));
    return;
  }
  const bounds = edges(values), bins = bounds.map((edge, i) => ({ low: i ? bounds[i - 1] : 0, high: edge, n: firstAbove(values, edge) - (i ? firstAbove(values, bounds[i - 1]) : 0) }));
  const most = Math.max(...bins.map(({ n }) => n)), wide = (WIDTH - LEFT - 10) / bins.length;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Histogram; the table below has the same counts" });
  bins.forEach(({ high, n }, i) => {
    const tall = (n / most) * (HEIGHT - BOTTOM - 38), x = LEFT + i * wide;
    picture.append(svg("rect", { class: "column", x: x + 1, y: HEIGHT - BOTTOM - tall, width: wide - 2, height: tall }));
    if (n) picture.append(svg("text", { class: "tick", x: x + wide / 2, y: HEIGHT - BOTTOM - tall - 3, "text-anchor": "middle" }, count(n)));
    if (i % Math.ceil(bins.length / 12) === 0) picture.append(svg("text", { class: "tick", x: x + wide, y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, duration(high)));
  });
  const marks = [];
  for (const [label, share] of /** @type {[string, number][]} */ ([["p50", 0.5], ["p99", 0.99]])) {
    const value = values[Math.ceil(share * values.length) - 1];
    const bin = Math.max(bins.findIndex(({ high }) => value <= high), 0), { low, high } = bins[bin];
    const inside = value > 0 && low > 0 ? Math.log(value / low) / Math.log(high / low) : 0.5;
    const x = LEFT + (bin + inside) * wide;
    picture.append(svg("line", { class: "mark", x1: x, x2: x, y1: 14, y2: HEIGHT - BOTTOM }));
    picture.append(svg("text", { class: "tick", x, y: 10, "text-anchor": share > 0.9 ? "start" : "end" }, label));
    marks.push(`${label} ${duration(value)}`);
  }
  plot.append(picture, element("p", `${marks.join(", ")} of ${count(values.length)} in view.`, "quiet"));
  table.append(plainTable(["up to", "how many"], bins.map(({ high, n }) => [duration(high), count(n)]), 0));
}

/**
 * Clicking a dot of the roofline finds its op on the timeline.
 * @param {Timeline} timeline
 */
export function bindRoofline(timeline) {
  for (const dot of document.querySelectorAll(".dot")) {
    const go = () => {
      const { op = "", shape = "" } = /** @type {SVGElement} */ (dot).dataset;
      const { scene } = timeline, search = /** @type {HTMLInputElement} */ (document.getElementById("find"));
      search.value = op;
      timeline.seek(op);
      const isIt = (/** @type {number} */ node) => stackOf(scene, node).some((one) => nodeName(scene, one) === op);
      for (const source of scene.devices.flatMap(({ streams }) => streams)) {
        const mine = source.node.map((_, i) => i).filter((i) => isIt(source.node[i]));
        const index = mine.find((i) => source.shape[i] >= 0 && scene.names[source.shape[i]] === shape) ?? mine[0];
        if (index === undefined) continue;
        document.getElementById("timeline")?.scrollIntoView({ block: "start" });
        timeline.go({ source, index });
        return;
      }
    };
    dot.addEventListener("click", go);
    dot.addEventListener("keydown", (event) => {
      if (/** @type {KeyboardEvent} */ (event).key === "Enter") go();
    });
  }
}
