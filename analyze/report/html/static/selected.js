// What the selected item is: its name, times, launch, shapes and stack; for a gap its cause and what the host did.

import { API, FRAME, KIND_NAMES, OP, abreast, firstAbove, nested, nodeName, placeAt, stackOf } from "./data.js";
import { element } from "./draw.js";
import { count, duration, instant } from "./units.js";

/** @typedef {import("./data.js").Scene} Scene */
/** @typedef {import("./lanes.js").Item} Item */

const SHOWN_STACK = 14, HALF = 0.5;

/**
 * Fill the panel below the timeline.
 * @param {HTMLElement} panel
 * @param {Scene} scene
 * @param {Item|null} item
 * @param {import("./timeline.js").Timeline} timeline
 */
export function showSelected(panel, scene, item, timeline) {
  panel.replaceChildren();
  if (!item) {
    panel.append(element("p", "Nothing is selected: click a slice or a gap, or press N for the next gap.", "quiet"));
    return;
  }
  const { lane, index } = item;
  const list = element("dl");
  const say = (/** @type {string} */ label, /** @type {string|Node|null|undefined} */ value) => {
    if (!value) return;
    const cell = element("dd");
    cell.append(value);
    list.append(element("dt", label), cell);
  };
  panel.append(element("h3", titleOf(scene, item)), list);
  const zero = scene.window[0], step = stepOf(scene, item.start);
  say("when", `${instant(item.start - zero, 1)} into the window${step}, ts ${timestamp(scene, item.start)}`);
  say("takes", duration(item.end - item.start) + (item.end - item.start >= 1000 ? ` (${count(item.end - item.start)} ns)` : ""));
  if (lane.kind === "slices") ofActivity(scene, lane, index, say);
  else if (lane.kind === "gaps") ofGap(scene, item, say);
  else if (lane.kind === "calls") ofCall(scene, lane, index, say);
  const zoom = element("button", "Zoom to it");
  zoom.type = "button";
  zoom.addEventListener("click", () => timeline.show(item.start - (item.end - item.start) / 4, item.end + (item.end - item.start) / 4));
  panel.append(zoom);
}

/** @typedef {(label: string, value: string|Node|null|undefined) => void} Say */

/** @param {Scene} scene @param {Item} item */
function titleOf(scene, { lane, index, start, end }) {
  if (lane.kind === "gaps" && lane.source.note) return `Waits ${duration(end - start)} ${scene.names[lane.source.note[index]]}`;
  if (lane.kind === "gaps") return `Idle for ${duration(end - start)}: ${scene.states[lane.source.state[index]].label.replace("Idle: ", "")}`;
  return lane.text(index);
}

/** @param {Scene} scene @param {number} time */
function stepOf(scene, time) {
  const { start, dur, name } = scene.steps, at = firstAbove(start, time) - 1;
  return at >= 0 && time < start[at] + dur[at] ? `, ${scene.names[name[at]]} + ${duration(time - start[at])} on the host` : "";
}

/** A time of the file, in microseconds as the file has it. @param {Scene} scene @param {number} time */
function timestamp(scene, time) {
  const ns = BigInt(scene.origin) + BigInt(Math.round(time)), part = ((ns % 1000n) + 1000n) % 1000n;
  return `${(ns - part) / 1000n}.${String(part).padStart(3, "0")}`;
}

/** @param {Scene} scene @param {import("./lanes.js").Lane} lane @param {number} i @param {Say} say */
function ofActivity(scene, lane, i, say) {
  const table = lane.source, device = scene.devices[lane.owner];
  say("on", table.label ?? `${device.label}, ${lane.label.split(": ").pop()}`);
  if (table.count[i] > 1) return say("what", `${count(table.count[i])} short activities that follow each other closely, drawn as one`);
  say("kind", scene.categories[table.category[i]].label);
  const stack = stackOf(scene, table.node[i]);
  const op = stack.filter((node) => scene.stacks.kind[node] === OP).pop();
  say("op", op === undefined ? "" : nodeName(scene, op));
  say("shapes", table.shape[i] >= 0 ? scene.names[table.shape[i]] : "");
  say("launched as", table.detail[i] >= 0 ? scene.names[table.detail[i]] : "");
  if (table.thread[i] >= 0) {
    const api = callAt(scene, table.thread[i], table.start[i] - table.lag[i]);
    say("launch", `${api || "call"} on ${threadLabel(scene, table.thread[i])}, ${duration(table.lag[i])} before the start; the call took ${duration(table.call[i])}`);
  } else if (scene.threads.length) say("launch", "not recorded");
  say("stack", stackList(scene, stack));
}

/** @param {Scene} scene @param {Item} item @param {Say} say */
function ofGap(scene, item, say) {
  const { lane, index, start, end } = item, table = lane.source, device = scene.devices[lane.owner];
  const state = scene.states[table.state[index]];
  if (table.note) return say("cause", state.cause);
  say("cause", `${state.label.replace("Idle: ", "")}: ${state.cause}`);
  const parts = scene.states.filter(({ id }) => table.parts[id]?.[index]).sort((a, b) => table.parts[b.id][index] - table.parts[a.id][index]);
  if (parts.length > 1) say("all of it", parts.map(({ id, label }) => `${label.replace("Idle: ", "")} ${duration(table.parts[id][index])}`).join(", "));
  say("before it", nameAt(scene, device, start - 1));
  say("ended by", nameAt(scene, device, end));
  if (table.thread[index] < 0) return say("launch", "not recorded");
  const from = start + table.launch[index];
  const api = callAt(scene, table.thread[index], from);
  say("launch", `${api || "call"} on ${threadLabel(scene, table.thread[index])}, ${from >= start ? `${duration(from - start)} after the gap began` : `${duration(start - from)} before the gap began`}`);
  const doing = meanwhile(scene, table.thread[index], start, Math.min(Math.max(from, start), end));
  say("source line", nodeName(scene, doing.filter((node) => scene.stacks.kind[node] === FRAME).pop() ?? -1));
  say("host meanwhile", doing.length ? stackList(scene, doing) : from > start ? "nothing that was recorded: Python, or waiting" : "");
}

/** @param {Scene} scene @param {import("./lanes.js").Lane} lane @param {number} i @param {Say} say */
function ofCall(scene, lane, i, say) {
  const node = lane.source.node[i];
  say("on", lane.label);
  if (node < 0) return;
  say("kind", KIND_NAMES[scene.stacks.kind[node]]);
  say("stack", stackList(scene, stackOf(scene, node)));
}

/** The activity of a device at an instant. @param {Scene} scene @param {import("./data.js").Device} device @param {number} time */
function nameAt(scene, device, time) {
  for (const stream of device.streams) {
    for (const row of abreast(stream.start, stream.dur)) {
      const at = placeAt(row, time);
      if (at >= 0) return stream.name[row.index[at]] >= 0 ? scene.names[stream.name[row.index[at]]] : "short activities";
    }
  }
  return "";
}

/** The innermost API call of a thread at an instant. @param {Scene} scene @param {number} number @param {number} time */
function callAt(scene, number, time) {
  const thread = scene.threads.find((one) => one.thread === number);
  if (!thread) return "";
  for (let i = firstAbove(thread.start, time) - 1, looked = 0; i >= 0 && looked < 400; i--, looked++) {
    const node = thread.node[i];
    if (node >= 0 && scene.stacks.kind[node] === API && thread.start[i] + thread.dur[i] >= time) return nodeName(scene, node);
  }
  return "";
}

/**
 * What a thread did for most of an interval, outermost first: at each level the call that covers over half of it.
 * @param {Scene} scene @param {number} number @param {number} start @param {number} end
 */
function meanwhile(scene, number, start, end) {
  const thread = scene.threads.find((one) => one.thread === number), found = [];
  if (!thread || end <= start) return [];
  for (const row of nested(thread.start, thread.dur)) {
    let best = -1, most = 0;
    for (let at = Math.max(firstAbove(row.start, start) - 1, 0); at < row.start.length && row.start[at] < end; at++) {
      const inside = Math.min(row.end[at], end) - Math.max(row.start[at], start);
      if (inside > most) [most, best] = [inside, row.index[at]];
    }
    if (best < 0 || most < HALF * (end - start) || thread.node[best] < 0) break;
    found.push(thread.node[best]);
  }
  return found;
}

/** @param {Scene} scene @param {number} number */
function threadLabel(scene, number) {
  return scene.threads.find((one) => one.thread === number)?.label ?? "a thread";
}

/** Innermost first; what is far out is folded. @param {Scene} scene @param {number[]} stack */
function stackList(scene, stack) {
  if (!stack.length) return null;
  const list = element("ol"), nodes = [...stack].reverse();
  const kinds = (/** @type {number} */ node) => (scene.stacks.kind[node] >= FRAME ? KIND_NAMES[scene.stacks.kind[node]] : "");
  nodes.slice(0, SHOWN_STACK).forEach((node) => {
    const line = element("li");
    line.append(element("code", nodeName(scene, node)), element("span", kinds(node) && ` ${kinds(node)}`, "quiet"));
    list.append(line);
  });
  if (nodes.length > SHOWN_STACK) list.append(element("li", `… ${count(nodes.length - SHOWN_STACK)} more`, "quiet"));
  return list;
}
