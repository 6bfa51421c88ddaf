// The icicle: all stacks as one picture, callers above what they call, width by time.

import { API, FRAME, KIND_NAMES, LIBRARY, MODULE, NATIVE, OP, RANGE, nodeName } from "./data.js";
import { element, fitted, hideTip, inkOn, plainTable, readTheme, showTip, sized } from "./draw.js";
import { count, duration, memory } from "./units.js";

/** @typedef {import("./data.js").Scene} Scene */
/** @typedef {{name: string, kind: number, own: number, was: number, total: number, before: number, size: number, calls: number, children: Frame[], up: Frame|null, node: number}} Frame */
/** @typedef {{frame: Frame, x: number, wide: number, level: number}} Box */

const LEVEL = 19, LISTED = 100, FOLDED = 3, ALMOST_ALL = 0.999;
const COLOURS = { [OP]: "#56b4e9", [RANGE]: "#009e73", [API]: "#d5b36a", [FRAME]: "#cc79a7", [LIBRARY]: "#b9c2cc", [MODULE]: "#e69f00", [NATIVE]: "#8fa3b8" };
const KINDS = /** @type {Record<string, number[]>} */ ({ all: [OP, RANGE, API, FRAME, MODULE, LIBRARY, NATIVE], python: [RANGE, FRAME, LIBRARY], mine: [RANGE, FRAME], layers: [MODULE, OP, RANGE], modules: [MODULE], ops: [OP, RANGE, API], frames: [FRAME, MODULE, LIBRARY], own: [FRAME, MODULE, OP] });

export class Icicle {
  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.box = /** @type {HTMLElement} */ (document.getElementById("icicle"));
    this.canvas = element("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.box.append(this.canvas);
    this.time = control("icicle-time");
    this.kinds = control("icicle-kinds");
    this.find = control("icicle-find");
    if (scene.stacks.device && !scene.stacks.device.some((ns) => ns > 0)) this.time.value = "host";
    this.differs = scene.stacks.deviceBefore !== undefined;
    this.say = duration;
    /** @type {Box[]} */
    this.boxes = [];
    /** @type {(() => void)[]} */
    this.watchers = [];
    this.root = this.zoomed = this.chosen = this.build();
    this.bind();
    this.rebuild();
  }

  /** The tree of the chosen kinds and times; what is left out counts for the caller that stays. @returns {Frame} */
  build() {
    const { stacks } = this.scene, kept = new Set(KINDS[this.kinds.value] ?? KINDS.all);
    /** @type {Record<string, number[]>} */
    const amounts = /** @type {any} */ (stacks);
    const times = amounts[this.time.value] ?? [], before = amounts[`${this.time.value}Before`] ?? [];
    this.say = this.time.value === "bytes" ? memory : duration;
    const root = this.frame("everything", -1, null, -1);
    /** @type {Frame[]} */
    const of = new Array(times.length);
    /** @type {Map<Frame, Map<string, Frame>>} */
    const inside = new Map();
    for (let node = 0; node < times.length; node++) {
      const up = stacks.parent[node] < 0 ? root : of[stacks.parent[node]];
      const kind = stacks.kind[node];
      if (!kept.has(kind)) {
        of[node] = up;
      } else {
        const name = nodeName(this.scene, node), key = `${kind} ${name}`;
        const known = inside.get(up) ?? new Map();
        inside.set(up, known);
        let frame = known.get(key);
        if (!frame) {
          frame = this.frame(name, kind, up, node);
          known.set(key, frame);
          up.children.push(frame);
        }
        frame.calls += stacks.calls[node];
        of[node] = frame;
      }
      of[node].own += times[node];
      of[node].was += before[node] ?? 0;
    }
    total(root);
    return root;
  }

  /** @param {string} name @param {number} kind @param {Frame|null} up @param {number} node @returns {Frame} */
  frame(name, kind, up, node) {
    return { name, kind, own: 0, was: 0, total: 0, before: 0, size: 0, calls: 0, children: [], up, node };
  }

  rebuild() {
    this.root = this.build();
    let at = this.root;
    while (at.children.length && at.children[0].size >= ALMOST_ALL * at.size) at = at.children[0];
    this.zoom(at); // what everything has in common is said in one line
  }

  draw() {
    const theme = readTheme(), width = Math.max(this.box.clientWidth, 100);
    /** @type {Box[]} */
    this.boxes = [];
    /** @type {Frame[]} */
    const callers = [];
    for (let at = this.zoomed.up; at; at = at.up) callers.unshift(at);
    if (callers.length > FOLDED) callers.splice(1, callers.length - 2);
    callers.forEach((frame, level) => this.boxes.push({ frame, x: 0, wide: width, level }));
    const place = (/** @type {Frame} */ frame, /** @type {number} */ x, /** @type {number} */ wide, /** @type {number} */ level) => {
      this.boxes.push({ frame, x, wide, level });
      let at = x;
      for (const child of frame.children) {
        const room = (child.size / Math.max(frame.size, 1)) * wide;
        if (room >= 0.5) place(child, at, room, level + 1);
        at += room;
      }
    };
    place(this.zoomed, 0, width, callers.length);
    const levels = Math.max(...this.boxes.map((one) => one.level)) + 1;
    const context = sized(this.canvas, width, levels * LEVEL + 2);
    context.fillStyle = theme.card;
    context.fillRect(0, 0, width, levels * LEVEL + 2);
    context.font = "11.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    const sought = this.find.value.trim().toLowerCase();
    let found = 0;
    for (const { frame, x, wide, level } of this.boxes) {
      const hit = sought !== "" && frame.name.toLowerCase().includes(sought);
      if (hit) found += 1;
      const colour = hit ? "#f0e442" : this.differs ? changed(frame, this.root) : frame.kind < 0 ? "#d5dde5" : COLOURS[/** @type {0} */ (frame.kind)];
      context.globalAlpha = sought && !hit ? 0.45 : 1;
      context.fillStyle = colour;
      context.fillRect(x, level * LEVEL, Math.max(wide - 0.8, 0.6), LEVEL - 1);
      context.fillStyle = inkOn(colour);
      fitted(context, frame.name, x + 4, level * LEVEL + LEVEL / 2, wide - 8);
    }
    context.globalAlpha = 1;
    const chosen = this.boxes.find(({ frame }) => frame === this.chosen);
    if (chosen) {
      context.strokeStyle = theme.ink;
      context.lineWidth = 2;
      context.strokeRect(chosen.x + 1, chosen.level * LEVEL, Math.max(chosen.wide - 2, 2), LEVEL - 1);
    }
    this.describe(sought, found);
    this.watchers.forEach((watcher) => watcher());
  }

  /** @param {string} sought @param {number} found */
  describe(sought, found) {
    const { chosen, root } = this, where = { device: "of device time", host: "of host time", bytes: "of the memory" }[this.time.value];
    const share = root.total ? (100 * chosen.total) / root.total : 0;
    const matches = sought ? ` ${count(found)} in sight match.` : "";
    const text = !root.size ? "No such time was recorded: choose other levels, or the other time."
      : this.differs ? `${chosen.name}: ${this.change(chosen)}.${matches}`
        : `${chosen.name}: ${this.say(chosen.total)}, ${share.toFixed(1)}% ${where}; ${this.say(chosen.own)} outside what is below it; ${count(chosen.calls)} calls.${matches}`;
    /** @type {HTMLElement} */ (document.getElementById("icicle-path")).textContent = text;
  }

  /** From A to B. @param {Frame} frame */
  change({ before, total: now }) {
    const by = now - before;
    return `A ${this.say(before)}, B ${this.say(now)}: ${by < 0 ? "-" : "+"}${this.say(Math.abs(by))}${before ? ` (${by < 0 ? "" : "+"}${((100 * by) / before).toFixed(1)}%)` : ", new"}`;
  }

  table() {
    /** @type {Map<string, {name: string, own: number, calls: number}>} */
    const byName = new Map();
    const visit = (/** @type {Frame} */ frame) => {
      const one = byName.get(frame.name) ?? { name: frame.name, own: 0, calls: 0 };
      one.own += frame.own;
      one.calls += frame.calls;
      byName.set(frame.name, one);
      frame.children.forEach(visit);
    };
    visit(this.zoomed);
    const rows = [...byName.values()].filter((one) => one.own > 0).sort((a, b) => b.own - a.own).slice(0, LISTED);
    return plainTable(["in it", "its own", "calls"], rows.map((one) => [one.name, this.say(one.own), count(one.calls)]), 1);
  }

  /** @param {Frame} frame */
  zoom(frame) {
    this.zoomed = this.chosen = frame;
    this.draw();
  }

  /** To the next caller that holds more. */
  up() {
    let at = this.zoomed.up ?? this.root;
    while (at.up && at.size === this.zoomed.size) at = at.up;
    this.zoom(at);
  }

  /** @param {MouseEvent} event */
  at(event) {
    const box = this.canvas.getBoundingClientRect(), level = Math.floor((event.clientY - box.top) / LEVEL), x = event.clientX - box.left;
    return this.boxes.find((one) => one.level === level && x >= one.x && x < one.x + one.wide)?.frame;
  }

  bind() {
    this.canvas.addEventListener("click", (event) => {
      const frame = this.at(event);
      if (frame) this.zoom(frame);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const frame = this.at(event), whole = Math.max(this.root.total, 1);
      const amount = frame && (this.differs ? this.change(frame) : `${this.say(frame.total)}, ${((100 * frame.total) / whole).toFixed(1)}% of all; ${this.say(frame.own)} outside what is below it`);
      if (frame) showTip(event, frame.name, [amount ?? "", `${KIND_NAMES[frame.kind] ?? ""}, ${count(frame.calls)} ${this.time.value === "bytes" ? "allocations" : "calls"}`]);
      else hideTip();
    });
    this.canvas.addEventListener("pointerleave", hideTip);
    this.box.addEventListener("keydown", (event) => {
      const next = this.neighbour(event.key);
      if (event.key === "Enter") this.zoom(this.chosen);
      else if (event.key === "Backspace") this.up();
      else if (next) {
        this.chosen = next;
        this.draw();
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.time.addEventListener("change", () => this.rebuild());
    this.kinds.addEventListener("change", () => this.rebuild());
    this.find.addEventListener("input", () => this.draw());
    document.getElementById("icicle-up")?.addEventListener("click", () => this.up());
    document.getElementById("icicle-top")?.addEventListener("click", () => this.zoom(this.root));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** @param {string} key */
  neighbour(key) {
    const { chosen } = this, beside = chosen.up?.children ?? [];
    if (key === "ArrowDown") return chosen.children[0];
    if (key === "ArrowUp") return chosen.up;
    if (key === "ArrowRight") return beside[beside.indexOf(chosen) + 1];
    return key === "ArrowLeft" ? beside[beside.indexOf(chosen) - 1] : undefined;
  }
}

/** Sum up from below, and order what is inside by size. @param {Frame} frame */
function total(frame) {
  frame.total = frame.own;
  frame.before = frame.was;
  frame.size = Math.max(frame.own, frame.was);
  for (const child of frame.children) {
    total(child);
    frame.total += child.total;
    frame.before += child.before;
    frame.size += child.size;
  }
  frame.children = frame.children.filter((child) => child.size > 0).sort((a, b) => b.size - a.size);
}

/** Orange for more than before, blue for less, paler where it is a small part of everything. @param {Frame} frame @param {Frame} root */
function changed(frame, root) {
  const by = frame.total - frame.before, weight = Math.min(Math.sqrt(Math.abs(by) / Math.max(root.size * 0.05, 1)), 1);
  const full = by > 0 ? [213, 94, 0] : [0, 114, 178], pale = [221, 225, 230];
  return `#${full.map((c, i) => Math.round(pale[i] + (c - pale[i]) * weight).toString(16).padStart(2, "0")).join("")}`;
}

/** @param {string} id */
function control(id) {
  return /** @type {HTMLInputElement|HTMLSelectElement} */ (document.getElementById(id));
}
