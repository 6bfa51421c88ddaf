// The data of the page: unpacked once, typed, and searched by time.

/**
 * @typedef {object} Slices One stream: what ran, in order of start. Times in ns from the scene's origin.
 * @property {number|null} stream
 * @property {Float64Array} start
 * @property {number[]} dur
 * @property {number[]} count above 1: so many short slices drawn as one
 * @property {number[]} name
 * @property {number[]} category
 * @property {number[]} node stack of the launch, -1 without one
 * @property {number[]} shape
 * @property {number[]} detail
 * @property {number[]} lag from the start of the launch call to the start
 * @property {number[]} call length of the launch call
 * @property {number[]} thread of the launch call, -1 without one
 * @property {string} [label]
 */
/**
 * @typedef {object} Gaps Idle time of one device.
 * @property {Float64Array} start
 * @property {number[]} dur
 * @property {number[]} state the one with most of the gap
 * @property {number[]} thread that launched what ends it, -1 where unknown
 * @property {number[]} launch start of that launch call, from the gap's start
 * @property {Record<string, number[]>} parts ns by state
 * @property {number[]} [last] waits of a rank: the device that came last
 * @property {number[]} [note] likewise: what it waited for
 * @property {string} [label]
 */
/** @typedef {{time: Float64Array, value: Float64Array, part: number}} Series */
/** @typedef {{label: string, window: number[], streams: Slices[], gaps: Gaps, queue: Series}} Device */
/** @typedef {{start: Float64Array, dur: number[], name: number[]}} Spans */
/**
 * @typedef {object} Thread
 * @property {number} thread
 * @property {string} label
 * @property {Float64Array} start
 * @property {number[]} dur
 * @property {number[]} node below -1: minus one minus how many short calls are drawn as one
 * @property {Spans} blocking
 * @property {Spans} loading
 */
/** @typedef {{parent: Float64Array, name: number[], kind: number[], calls: number[], host: number[], device: number[], bytes?: number[], hostBefore?: number[], deviceBefore?: number[]}} Stacks */
/** @typedef {{states: string[], categories: string[], names: number[]}} Places */
/**
 * @typedef {object} Scene
 * @property {string} origin ns on the file's own clock
 * @property {number[]} window
 * @property {{id: string, label: string, colour: string}[]} categories
 * @property {{id: string, label: string, cause: string}[]} states
 * @property {Device[]} devices
 * @property {Thread[]} threads
 * @property {Stacks} stacks
 * @property {(Series & {label: string, what: string})[]} memory
 * @property {Spans} steps
 * @property {Spans} [otherSteps] of the second side of a comparison
 * @property {Record<string, Places>} places
 * @property {string[]} names
 * @property {Scene[]} [pair] in place of everything else: both sides of a comparison
 * @property {string[]} [labels] what they are called
 */

export const OP = 0, RANGE = 1, API = 2, FRAME = 3, MODULE = 4, LIBRARY = 5, NATIVE = 6;
export const KIND_NAMES = ["op", "range", "API call", "Python", "module", "Python, library", "C++"];

/**
 * The text of a packed element.
 * @param {string} id
 * @returns {Promise<string>} empty where the element is
 */
export async function unpack(id) {
  const text = document.getElementById(id)?.textContent?.trim() ?? "";
  if (!text) return "";
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

/**
 * Values from their differences.
 * @param {number[]} differences
 */
export function sums(differences) {
  const found = new Float64Array(differences.length);
  let total = 0;
  for (let i = 0; i < differences.length; i++) found[i] = total += differences[i];
  return found;
}

/**
 * The scene of the page, null where it has none.
 * @returns {Promise<Scene|null>}
 */
export async function readScene() {
  const text = await unpack("scene-data");
  if (!text) return null;
  const raw = JSON.parse(text);
  if (raw.pair) raw.pair.forEach(readTimes);
  else readTimes(raw);
  return raw;
}

/** @param {any} raw a scene as it is stored; one of memory has stacks and names only */
function readTimes(raw) {
  raw.stacks.parent = sums(raw.stacks.parent);
  if (!raw.devices) return;
  for (const device of raw.devices) {
    for (const stream of device.streams) stream.start = sums(stream.start);
    device.gaps.start = sums(device.gaps.start);
    readSeries(device.queue);
  }
  for (const thread of raw.threads) {
    thread.start = sums(thread.start);
    thread.blocking.start = sums(thread.blocking.start);
    thread.loading.start = sums(thread.loading.start);
  }
  raw.memory.forEach(readSeries);
  raw.steps.start = sums(raw.steps.start);
}

/** @param {any} series */
function readSeries(series) {
  series.time = sums(series.time);
  series.value = sums(series.value);
}

/**
 * The first place whose value is above the limit.
 * @param {ArrayLike<number>} sorted
 * @param {number} limit
 */
export function firstAbove(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** @typedef {{start: Float64Array, end: Float64Array, index: Int32Array}} Row Slices that do not overlap. */

/**
 * Calls in rows: what lies inside another call entirely stands in the row below it.
 * @param {ArrayLike<number>} start in order
 * @param {ArrayLike<number>} dur
 * @param {(i: number) => boolean} [shown]
 * @returns {Row[]}
 */
export function nested(start, dur, shown) {
  /** @type {number[][]} */
  const rows = [];
  /** @type {number[]} */
  const open = [];
  for (let i = 0; i < start.length; i++) {
    if (shown && !shown(i)) continue;
    const end = start[i] + dur[i];
    while (open.length && (open[open.length - 1] <= start[i] || open[open.length - 1] < end)) open.pop();
    (rows[open.length] ??= []).push(i);
    open.push(end);
  }
  return rowsOf(rows, start, dur);
}

/**
 * Activities in rows: each in the first one that is free, since what runs side by side lies in nothing.
 * @param {ArrayLike<number>} start in order
 * @param {ArrayLike<number>} dur
 * @param {(i: number) => boolean} [shown]
 * @returns {Row[]}
 */
export function abreast(start, dur, shown) {
  /** @type {number[][]} */
  const rows = [];
  /** @type {number[]} */
  const free = [];
  for (let i = 0; i < start.length; i++) {
    if (shown && !shown(i)) continue;
    let row = free.findIndex((end) => end <= start[i]);
    if (row < 0) row = free.length;
    (rows[row] ??= []).push(i);
    free[row] = start[i] + dur[i];
  }
  return rowsOf(rows, start, dur);
}

/** @param {number[][]} rows @param {ArrayLike<number>} start @param {ArrayLike<number>} dur @returns {Row[]} */
function rowsOf(rows, start, dur) {
  return rows.map((row) => ({
    start: Float64Array.from(row, (i) => start[i]),
    end: Float64Array.from(row, (i) => start[i] + dur[i]),
    index: Int32Array.from(row),
  }));
}

/**
 * The place in a row of the slice at an instant, -1 where there is none.
 * @param {Row} row
 * @param {number} time
 */
export function placeAt(row, time) {
  const at = firstAbove(row.start, time) - 1;
  return at >= 0 && time < row.end[at] ? at : -1;
}

/**
 * The callers of a node, outermost first, itself last.
 * @param {Scene} scene
 * @param {number} node
 */
export function stackOf(scene, node) {
  const found = [];
  for (let at = node; at >= 0; at = scene.stacks.parent[at]) found.unshift(at);
  return found;
}

/**
 * The name of a node.
 * @param {Scene} scene
 * @param {number} node
 */
export function nodeName(scene, node) {
  return node >= 0 ? scene.names[scene.stacks.name[node]] : "";
}
