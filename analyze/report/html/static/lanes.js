// Lanes: what is on the timeline, where each lane stands, and how it is drawn for a span of time.

import { API, FRAME, abreast, firstAbove, nested, nodeName, placeAt } from "./data.js";
import { fitted, inkOn, readPatterns, tint } from "./draw.js";
import { count, instant, memory, ticks } from "./units.js";

/** @typedef {import("./data.js").Scene} Scene */
/** @typedef {import("./data.js").Row} Row */
/** @typedef {import("./draw.js").Theme} Theme */
/** @typedef {{start: number, end: number}} View */
/** @typedef {{lane: Lane, index: number, row: number, start: number, end: number}} Item */
/**
 * @typedef {object} Lane
 * @property {"steps"|"slices"|"gaps"|"calls"|"series"} kind
 * @property {string} label
 * @property {Row[]} rows
 * @property {number} rowHeight
 * @property {number} top
 * @property {number} height
 * @property {(i: number) => string | CanvasPattern} colour
 * @property {(i: number) => string} text
 * @property {any} source the table of the scene that the slices are rows of
 * @property {number} owner device or thread, -1 for neither
 * @property {Row[]} [marks] blocking calls and data loading of a thread
 * @property {{time: Float64Array, value: Float64Array, peak: number, colour: string, say: (v: number) => string}[]} [lines]
 */

const COPIES = ["memcpy", "memset"];
const AXIS = 22, GAP = 8, ROW = 15, GAPS = 18, SERIES = 46, HEAD = 17;

/** All lanes of a scene, laid out for one width and one theme. */
export class Lanes {
  /**
   * @param {Scene} scene
   * @param {boolean} frames Python frames are shown
   */
  constructor(scene, frames) {
    this.scene = scene;
    /** @type {Lane[]} */
    this.lanes = [...this.ofSteps(), ...scene.devices.flatMap((_, i) => this.ofDevice(i)),
      ...scene.threads.flatMap((_, i) => this.ofThread(i, frames)), ...this.ofMemory()];
    let top = AXIS;
    for (const lane of this.lanes) {
      lane.top = top + HEAD;
      lane.height = lane.kind === "series" ? SERIES : Math.max(lane.rows.length, 1) * lane.rowHeight;
      top = lane.top + lane.height + GAP;
    }
    this.height = top;
    /** @type {CanvasPattern[]} */
    this.patterns = [];
  }

  /**
   * @param {Partial<Lane> & Pick<Lane, "kind"|"label"|"rows"|"source">} parts
   * @returns {Lane}
   */
  lane(parts) {
    return { rowHeight: ROW, top: 0, height: 0, colour: () => "#999999", text: () => "", owner: -1, ...parts };
  }

  ofSteps() {
    const { steps, otherSteps, names } = this.scene;
    return [steps, ...(otherSteps ? [otherSteps] : [])].filter(({ name }) => name.length).map((source, which) => this.lane({
      kind: "steps", label: `${otherSteps ? `${"AB"[which]}: ` : ""}steps`, rows: nested(source.start, source.dur), source,
      text: (i) => names[source.name[i]], colour: (i) => (i % 2 ? "#b8c4d0" : "#d5dde5"),
    }));
  }

  /** @param {number} number */
  ofDevice(number) {
    const device = this.scene.devices[number], { categories, names, states } = this.scene;
    const several = this.scene.devices.length > 1 ? `${device.label}: ` : "";
    /** @type {Lane[]} */
    const found = device.streams.filter(({ dur }) => dur.length).flatMap((stream) => {
      const copies = (/** @type {number} */ i) => COPIES.includes(categories[stream.category[i]].id);
      const label = stream.label ?? `${several}stream ${stream.stream ?? "not recorded"}`, mixed = stream.category.some((_, i) => copies(i)) && !stream.category.every((_, i) => copies(i));
      const parts = {
        kind: /** @type {const} */ ("slices"), source: stream, owner: number,
        colour: (/** @type {number} */ i) => categories[stream.category[i]].colour,
        text: (/** @type {number} */ i) => (stream.count[i] > 1 ? `${count(stream.count[i])} short ones` : names[stream.name[i]]),
      };
      const whole = this.lane({ ...parts, label, rows: abreast(stream.start, stream.dur), rowHeight: ROW + 5 });
      return mixed ? [whole, this.lane({ ...parts, label: `${label}, copies only`, rows: abreast(stream.start, stream.dur, copies), rowHeight: 10 })] : [whole];
    });
    const { gaps, queue } = device;
    if (!gaps.dur.length && gaps.label) return found;
    found.push(this.lane({
      kind: "gaps", label: gaps.label ?? `${several}idle, by cause`, rows: abreast(gaps.start, gaps.dur), source: gaps, owner: number,
      rowHeight: GAPS, colour: (i) => this.patterns[gaps.state[i]], text: (i) => states[gaps.state[i]].label.replace("Idle: ", ""),
    }));
    if (queue.time.length) {
      found.push(this.lane({ kind: "series", label: `${several}queue depth`, rows: [], source: queue, owner: number,
        lines: [{ ...queue, peak: largest(queue.value), colour: "#0072b2", say: (v) => `${count(v)} queued` }] }));
    }
    return found;
  }

  /**
   * @param {number} number
   * @param {boolean} frames
   */
  ofThread(number, frames) {
    const thread = this.scene.threads[number], { stacks } = this.scene;
    const kind = (/** @type {number} */ i) => (thread.node[i] >= 0 ? stacks.kind[thread.node[i]] : API);
    const shown = frames ? undefined : (/** @type {number} */ i) => kind(i) < FRAME;
    const rows = nested(thread.start, thread.dur, shown);
    if (!rows.length && !thread.blocking.dur.length) return [];
    const text = (/** @type {number} */ i) => (thread.node[i] >= 0 ? nodeName(this.scene, thread.node[i]) : `${count(-thread.node[i] - 1)} short calls`);
    return [this.lane({
      kind: "calls", label: thread.label, rows, source: thread, owner: thread.thread, text,
      colour: (i) => (thread.node[i] >= 0 ? tint(text(i)) : "#c9ced4"),
      marks: [thread.blocking, thread.loading].map((spans) => nested(spans.start, spans.dur)[0] ?? { start: new Float64Array(0), end: new Float64Array(0), index: new Int32Array(0) }),
    })];
  }

  ofMemory() {
    const byLabel = new Map();
    for (const one of this.scene.memory) byLabel.set(one.label, [...(byLabel.get(one.label) ?? []), one]);
    return [...byLabel].map(([label, lines]) => this.lane({
      kind: "series", label: `memory of ${label}`, rows: [], source: lines,
      lines: lines.map((/** @type {any} */ line) => ({ ...line, peak: Math.max(...lines.map((/** @type {any} */ l) => largest(l.value))),
        colour: line.what === "reserved" ? "#8a8f96" : "#009e73", say: (/** @type {number} */ v) => `${memory(v)} ${line.what}` })),
    }));
  }

  /**
   * What stands at a point, null where nothing does.
   * @param {number} time
   * @param {number} y in the whole drawing
   * @param {number} slack nanoseconds of a pixel: slices that small can be hit
   * @returns {Item|null}
   */
  hit(time, y, slack) {
    const lane = this.lanes.find((one) => y >= one.top - HEAD && y < one.top + one.height);
    if (!lane || lane.kind === "series") return null;
    const row = Math.min(Math.max(Math.floor((y - lane.top) / lane.rowHeight), 0), lane.rows.length - 1);
    const slices = lane.rows[row];
    if (!slices) return null;
    let at = placeAt(slices, time);
    for (const near of [time - slack, time + slack]) if (at < 0) at = placeAt(slices, near);
    if (at < 0) {
      const next = firstAbove(slices.start, time);
      at = [next - 1, next].find((i) => i >= 0 && i < slices.start.length && slices.start[i] - slack <= time && slices.end[i] + slack >= time) ?? -1;
    }
    return at < 0 ? null : this.item(lane, row, at);
  }

  /**
   * @param {Lane} lane
   * @param {number} row
   * @param {number} at place in the row
   * @returns {Item}
   */
  item(lane, row, at) {
    const slices = lane.rows[row];
    return { lane, row, index: slices.index[at], start: slices.start[at], end: slices.end[at] };
  }

  /**
   * The item of a row of a scene's table.
   * @param {any} source
   * @param {number} index
   * @returns {Item|null}
   */
  find(source, index) {
    for (const lane of this.lanes) {
      if (lane.source !== source) continue;
      for (let row = 0; row < lane.rows.length; row++) {
        const at = lane.rows[row].index.indexOf(index);
        if (at >= 0) return this.item(lane, row, at);
      }
    }
    return null;
  }

  /**
   * Draw the lanes that are in sight.
   * @param {CanvasRenderingContext2D} context
   * @param {Theme} theme
   * @param {View} view
   * @param {{width: number, height: number, scroll: number}} box
   * @param {(lane: Lane, i: number) => boolean} isFound
   */
  draw(context, theme, view, box, isFound) {
    if (!this.patterns.length) this.patterns = readPatterns(context, this.scene.states, theme);
    context.fillStyle = theme.card;
    context.fillRect(0, 0, box.width, box.height);
    const scale = box.width / (view.end - view.start);
    context.save();
    context.translate(0, -box.scroll);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const lane of this.lanes) {
      if (lane.top + lane.height < box.scroll || lane.top - HEAD > box.scroll + box.height) continue;
      context.fillStyle = theme.quiet;
      context.fillText(lane.label, 4, lane.top - HEAD / 2 - (lane.marks ? 2 : 0));
      if (lane.lines) drawLines(context, theme, lane, view, box.width);
      lane.rows.forEach((row, r) => this.drawRow(context, theme, lane, row, lane.top + r * lane.rowHeight, view, scale, isFound));
      lane.marks?.forEach((row, i) => drawMarks(context, row, lane.top - 4, view, scale, i));
      if (lane.marks) legend(context, theme, lane);
    }
    context.restore();
    drawAxis(context, theme, view, box, this.scene.window[0]);
  }

  /**
   * One row: slices of a pixel and more by themselves, smaller ones as the share of each pixel that they cover.
   * @param {CanvasRenderingContext2D} context
   * @param {Theme} theme
   * @param {Lane} lane
   * @param {Row} row
   * @param {number} top
   * @param {View} view
   * @param {number} scale pixels per nanosecond
   * @param {(lane: Lane, i: number) => boolean} isFound
   */
  drawRow(context, theme, lane, row, top, view, scale, isFound) {
    const height = lane.rowHeight - 1;
    let pixel = -1, covered = 0, most = -1, longest = 0, hit = false;
    const flush = () => {
      if (most >= 0) {
        const tall = Math.max(Math.min(covered * scale, 1), 0.15) * height;
        context.fillStyle = hit ? theme.mark : lane.colour(most);
        context.fillRect(pixel, top + height - tall, 1, tall);
      }
      covered = longest = 0;
      most = -1;
      hit = false;
    };
    for (let at = Math.max(firstAbove(row.start, view.start) - 1, 0); at < row.start.length && row.start[at] < view.end; at++) {
      const start = row.start[at], end = row.end[at], i = row.index[at];
      if (end <= view.start) continue;
      const x = Math.max((start - view.start) * scale, -1), wide = Math.min((end - view.start) * scale, 1e5) - x;
      if (wide < 1) {
        if (Math.floor(x) !== pixel) {
          flush();
          pixel = Math.floor(x);
        }
        covered += end - start;
        if (end - start >= longest) [longest, most] = [end - start, i];
        hit ||= isFound(lane, i);
        continue;
      }
      const colour = isFound(lane, i) ? theme.mark : lane.colour(i);
      context.fillStyle = colour;
      context.fillRect(x, top, Math.max(wide - (wide > 3 ? 1 : 0), 1), height);
      if (wide > 24) {
        context.fillStyle = typeof colour === "string" ? inkOn(colour) : theme.ink;
        if (typeof colour !== "string") backed(context, theme, lane.text(i), Math.max(x, 0), top, wide - Math.max(-x, 0), height);
        else fitted(context, lane.text(i), Math.max(x, 0) + 3, top + height / 2 + 0.5, wide - Math.max(-x, 0) - 6);
      }
    }
    flush();
  }
}

/** @param {Float64Array} values */
function largest(values) {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

/**
 * A text on a pattern, on a plain ground so that it can be read.
 * @param {CanvasRenderingContext2D} context @param {Theme} theme @param {string} text
 * @param {number} x @param {number} top @param {number} width @param {number} height
 */
function backed(context, theme, text, x, top, width, height) {
  const room = context.measureText(text).width + 6;
  if (room > width - 6) return;
  context.fillStyle = theme.tile;
  context.fillRect(x + 3, top + 2, room, height - 4);
  context.fillStyle = theme.ink;
  context.fillText(text, x + 6, top + height / 2 + 0.5);
}

const MARKS = [{ colour: "#d55e00", label: "blocking call" }, { colour: "#e69f00", label: "data loading" }];

/** What the bars above a thread mean. @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Lane} lane */
function legend(context, theme, lane) {
  let x = context.measureText(lane.label).width + 16;
  MARKS.forEach(({ colour, label }, i) => {
    if (!lane.marks?.[i]?.start.length) return;
    context.fillStyle = colour;
    context.fillRect(x, lane.top - HEAD / 2 - 4, 8, 4);
    context.fillStyle = theme.quiet;
    context.fillText(label, x + 12, lane.top - HEAD / 2 - 2);
    x += context.measureText(label).width + 28;
  });
}

/**
 * Blocking calls (first) and data loading as bars above a thread.
 * @param {CanvasRenderingContext2D} context @param {Row} row @param {number} top
 * @param {View} view @param {number} scale @param {number} which
 */
function drawMarks(context, row, top, view, scale, which) {
  context.fillStyle = MARKS[which].colour;
  for (let at = Math.max(firstAbove(row.start, view.start) - 1, 0); at < row.start.length && row.start[at] < view.end; at++) {
    if (row.end[at] <= view.start) continue;
    const x = (row.start[at] - view.start) * scale;
    context.fillRect(x, top, Math.max((row.end[at] - row.start[at]) * scale, 1), 3);
  }
}

/**
 * Amounts over time, from 0 at the bottom to the peak at the top.
 * @param {CanvasRenderingContext2D} context @param {Theme} theme @param {Lane} lane @param {View} view @param {number} width
 */
function drawLines(context, theme, lane, view, width) {
  const bottom = lane.top + lane.height, scale = width / (view.end - view.start);
  context.fillStyle = theme.rail;
  context.fillRect(0, lane.top, width, lane.height);
  for (const line of lane.lines ?? []) {
    const y = (/** @type {number} */ value) => bottom - (value / Math.max(line.peak, 1)) * (lane.height - 2);
    let at = firstAbove(line.time, view.start) - 1;
    context.beginPath();
    context.moveTo(0, y(at >= 0 ? line.value[at] : 0));
    for (at = Math.max(at, 0); at < line.time.length && line.time[at] <= view.end; at++) {
      const x = Math.max((line.time[at] - view.start) * scale, 0);
      context.lineTo(x, y(at ? line.value[at - 1] : 0));
      context.lineTo(x, y(line.value[at]));
    }
    context.lineTo(width, y(at ? line.value[Math.min(at, line.value.length) - 1] : 0));
    context.strokeStyle = line.colour;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineWidth = 1;
  }
  let x = context.measureText(lane.label).width + 16;
  for (const line of lane.lines ?? []) {
    context.fillStyle = line.colour;
    context.fillRect(x, lane.top - HEAD / 2 - 4, 8, 8);
    context.fillStyle = theme.quiet;
    const say = `most ${line.say(largest(line.value))}`;
    context.fillText(say, x + 12, lane.top - HEAD / 2);
    x += context.measureText(say).width + 26;
  }
}

/**
 * The axis: times from the start of the window.
 * @param {CanvasRenderingContext2D} context @param {Theme} theme @param {View} view
 * @param {{width: number, height: number}} box @param {number} zero
 */
function drawAxis(context, theme, view, box, zero) {
  context.fillStyle = theme.card;
  context.fillRect(0, 0, box.width, AXIS - 3);
  const { step, at } = ticks(view.start - zero, view.end - zero, box.width / 110);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const time of at) {
    const x = ((time + zero - view.start) / (view.end - view.start)) * box.width;
    context.fillStyle = theme.line;
    context.fillRect(x, 0, 1, AXIS - 3);
    context.fillStyle = theme.quiet;
    context.fillText(time === 0 ? "0" : instant(time, step), x + 4, 9);
  }
}
