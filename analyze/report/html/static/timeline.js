// The timeline: what is in view, what is selected, and every way to move.

import { firstAbove } from "./data.js";
import { element, hideTip, plainTable, readTheme, showTip, sized } from "./draw.js";
import { Lanes } from "./lanes.js";
import { gapsOf, opsOf } from "./places.js";
import { showSelected } from "./selected.js";
import { count, duration, instant } from "./units.js";

/** @typedef {import("./data.js").Scene} Scene */
/** @typedef {import("./lanes.js").Item} Item */
/** @typedef {import("./lanes.js").Lane} Lane */

const MOST_HEIGHT = 620, LEAST_NS = 20, TABLE_ROWS = 200;

export class Timeline {
  /** @param {Scene} scene */
  constructor(scene) {
    this.scene = scene;
    this.box = /** @type {HTMLElement} */ (document.getElementById("lanes"));
    this.panel = /** @type {HTMLElement} */ (document.getElementById("selected"));
    this.canvas = element("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.room = element("div");
    this.box.append(this.canvas, this.room);
    this.box.style.overflowY = "auto";
    this.canvas.style.position = "sticky";
    this.canvas.style.top = "0";
    this.theme = readTheme();
    this.frames = false;
    this.lanes = new Lanes(scene, false);
    const [start, end] = scene.window, margin = (end - start) * 0.01;
    this.whole = { start: start - margin, end: end + margin };
    this.view = { ...this.whole };
    /** @type {Item|null} */
    this.chosen = null;
    /** @type {{start: number, end: number, source: any, index: number}[]} */
    this.places = [];
    this.place = -1;
    this.sought = "";
    /** @type {Set<number>} */
    this.foundNames = new Set();
    /** @type {(() => void)[]} */
    this.watchers = [];
    this.waiting = false;
    this.bind();
    this.layout();
  }

  /** Draw soon, once for many changes. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** Lay the lanes out again: other lanes, another width, another theme. */
  layout() {
    this.theme = readTheme();
    this.lanes.patterns = [];
    this.height = Math.min(this.lanes.height, Math.min(MOST_HEIGHT, innerHeight * 0.8));
    this.box.style.height = `${this.height + 2}px`;
    this.room.style.height = `${Math.max(this.lanes.height - this.height, 0)}px`;
    this.draw();
  }

  get width() {
    return Math.max(this.box.clientWidth, 100);
  }

  draw() {
    const context = sized(this.canvas, this.width, this.height ?? 100);
    const scroll = this.box.scrollTop;
    this.lanes.draw(context, this.theme, this.view, { width: this.width, height: this.height ?? 100, scroll }, (lane, i) => this.isFound(lane, i));
    if (this.chosen) this.outline(context, this.chosen, scroll);
    const zero = this.scene.window[0], step = (this.view.end - this.view.start) / this.width;
    const text = `${instant(this.view.start - zero, step)} to ${instant(this.view.end - zero, step)} of the window: ${duration(this.view.end - this.view.start)} in view; a pixel is ${duration(step)}`;
    /** @type {HTMLElement} */ (document.getElementById("range")).textContent = text;
    this.watchers.forEach((watcher) => watcher());
  }

  /**
   * The chosen item, and the arrow from the call that launched it.
   * @param {CanvasRenderingContext2D} context
   * @param {Item} item
   * @param {number} scroll
   */
  outline(context, item, scroll) {
    const scale = this.width / (this.view.end - this.view.start);
    const x = (/** @type {number} */ time) => (time - this.view.start) * scale;
    const top = item.lane.top + item.row * item.lane.rowHeight - scroll;
    context.strokeStyle = this.theme.ink;
    context.lineWidth = 2;
    context.strokeRect(Math.max(x(item.start), -2), top - 1, Math.max(Math.min(x(item.end), this.width + 2) - Math.max(x(item.start), -2), 2), item.lane.rowHeight);
    const launch = this.launchOf(item);
    if (!launch) return;
    const [fromX, toX] = [x(launch.start), x(launch.target)], below = launch.lane.top > item.lane.top;
    const fromY = launch.lane.top - 2 - scroll, toY = item.lane.top + (below ? item.lane.height : -4) - scroll;
    context.strokeStyle = context.fillStyle = this.theme.accent;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX, (fromY + toY) / 2, toX, (fromY + toY) / 2, toX, toY);
    context.stroke();
    context.fillRect(fromX - 1, fromY, Math.max(launch.dur * scale, 2), 4);
    context.beginPath();
    const tail = below ? 7 : -7;
    context.moveTo(toX, toY - Math.sign(tail));
    context.lineTo(toX - 4, toY + tail);
    context.lineTo(toX + 4, toY + tail);
    context.fill();
  }

  /**
   * The call that launched an item, or what ends a gap; null where it is not known.
   * @param {Item} item
   */
  launchOf({ lane, index, start, end }) {
    const table = lane.source, isGap = lane.kind === "gaps";
    const find = (/** @type {string} */ kind, /** @type {number} */ owner) => this.lanes.lanes.find((one) => one.kind === kind && one.owner === owner);
    if (isGap && table.last) {
      const last = find("slices", table.last[index]);
      return last ? { lane: last, start: end, dur: 0, target: end } : null;
    }
    const thread = table.thread?.[index] >= 0 ? find("calls", table.thread[index]) : undefined;
    if (!thread) return null;
    return isGap ? { lane: thread, start: start + table.launch[index], dur: 0, target: end }
      : { lane: thread, start: start - table.lag[index], dur: table.call[index], target: start };
  }

  /**
   * Show a span of time.
   * @param {number} start
   * @param {number} end
   */
  show(start, end) {
    const least = Math.max(end - start, LEAST_NS), middle = (start + end) / 2;
    const most = (this.whole.end - this.whole.start) * 4;
    const length = Math.min(least, most);
    this.view = { start: middle - length / 2, end: middle + length / 2 };
    this.redraw();
  }

  /**
   * @param {number} factor below 1 zooms in
   * @param {number} [at] share of the width that stays where it is
   */
  zoom(factor, at = 0.5) {
    const length = this.view.end - this.view.start, fixed = this.view.start + at * length;
    const next = Math.min(Math.max(length * factor, LEAST_NS), (this.whole.end - this.whole.start) * 4);
    this.view = { start: fixed - at * next, end: fixed + (1 - at) * next };
    this.redraw();
  }

  /** @param {number} share of what is in view */
  move(share) {
    const by = (this.view.end - this.view.start) * share;
    this.view = { start: this.view.start + by, end: this.view.end + by };
    this.redraw();
  }

  fit() {
    this.view = { ...this.whole };
    this.redraw();
  }

  /**
   * Choose an item, and bring it into sight.
   * @param {Item|null} item
   * @param {boolean} go zoom to it where it is too small or outside
   */
  choose(item, go = false) {
    this.chosen = item;
    if (item && go) {
      const length = item.end - item.start, shown = this.view.end - this.view.start;
      if (length * 40 < shown || length > shown || item.start < this.view.start || item.end > this.view.end) {
        this.show(item.start - Math.max(length * 2, 50), item.end + Math.max(length * 2, 50));
      }
      const top = item.lane.top + item.row * item.lane.rowHeight;
      if (top < this.box.scrollTop + 40 || top > this.box.scrollTop + (this.height ?? 0) - 40) {
        this.box.scrollTop = Math.max(top - (this.height ?? 0) / 3, 0);
      }
    }
    showSelected(this.panel, this.scene, item, this);
    this.redraw();
  }

  longest() {
    const gaps = gapsOf(this.scene);
    if (gaps.length) this.go(gaps.reduce((a, b) => (b.end - b.start > a.end - a.start ? b : a)));
  }

  /** @param {{source: any, index: number}} place */
  go(place) {
    const item = this.lanes.find(place.source, place.index);
    if (item) this.choose(item, true);
    return item !== null;
  }

  /**
   * The gap after or before the chosen item, or after or before what is in view.
   * @param {1|-1} step
   */
  nextGap(step) {
    const gaps = gapsOf(this.scene), from = this.chosen?.start ?? (step > 0 ? this.view.start - 1 : this.view.end);
    const next = step > 0 ? gaps.find((gap) => gap.start > from) : gaps.filter((gap) => gap.start < from).pop();
    if (next) this.go(next);
  }

  /** @param {string} text */
  seek(text) {
    this.sought = text.trim().toLowerCase();
    this.foundNames = new Set();
    if (this.sought) this.scene.names.forEach((name, i) => name.toLowerCase().includes(this.sought) && this.foundNames.add(i));
    this.place = -1;
    this.redraw();
  }

  /** @param {Lane} lane @param {number} i */
  isFound(lane, i) {
    if (!this.foundNames.size) return false;
    if (lane.kind === "slices") return this.foundNames.has(lane.source.name[i]) || this.foundNames.has(opsOf(this.scene, lane.source)[i]);
    return lane.kind === "calls" && lane.source.node[i] >= 0 && this.foundNames.has(this.scene.stacks.name[lane.source.node[i]]);
  }

  /** The next match of the search after the chosen item, from the start again after the last one. */
  nextFound() {
    if (!this.foundNames.size) return;
    const from = this.chosen?.start ?? this.view.start - 1, key = (/** @type {Item} */ one) => one.start * 1e3 + one.row;
    let best = /** @type {Item|null} */ (null), first = /** @type {Item|null} */ (null);
    for (const lane of this.lanes.lanes) {
      if (lane.kind !== "slices" && lane.kind !== "calls") continue;
      lane.rows.forEach((row, r) => {
        for (let at = 0; at < row.start.length; at++) {
          if (!this.isFound(lane, row.index[at])) continue;
          const item = this.lanes.item(lane, r, at);
          if (!first || key(item) < key(first)) first = item;
          if (item.start > from && (!best || key(item) < key(best))) best = item;
          if (item.start > from) break;
        }
      });
    }
    if (best ?? first) this.choose(best ?? first, true);
  }

  /**
   * The neighbour of the chosen item, along its row or in another lane.
   * @param {number} along
   * @param {number} across
   */
  step(along, across) {
    const item = this.chosen;
    if (!item) return this.nextGap(1);
    if (along) {
      const row = item.lane.rows[item.row], at = row.index.indexOf(item.index) + along;
      if (at >= 0 && at < row.start.length) this.choose(this.lanes.item(item.lane, item.row, at), true);
      return;
    }
    const all = this.lanes.lanes.flatMap((lane) => lane.rows.map((_, row) => ({ lane, row })));
    let place = all.findIndex((one) => one.lane === item.lane && one.row === item.row) + across;
    for (; place >= 0 && place < all.length; place += across) {
      const { lane, row } = all[place], slices = lane.rows[row];
      const at = Math.max(firstAbove(slices.start, (item.start + item.end) / 2) - 1, 0);
      if (slices.start.length && slices.end[at] > this.view.start && slices.start[at] < this.view.end) {
        return this.choose(this.lanes.item(lane, row, at), true);
      }
    }
  }

  /** The activities in view that take longest, as a table. */
  table() {
    const rows = [];
    for (const lane of this.lanes.lanes) {
      if (lane.kind !== "slices" && lane.kind !== "gaps") continue;
      for (const row of lane.rows) {
        for (let at = Math.max(firstAbove(row.start, this.view.start) - 1, 0); at < row.start.length && row.start[at] < this.view.end; at++) {
          if (row.end[at] > this.view.start) rows.push({ lane, i: row.index[at], start: row.start[at], dur: row.end[at] - row.start[at] });
        }
      }
    }
    const total = rows.length, zero = this.scene.window[0];
    rows.sort((a, b) => b.dur - a.dur).splice(TABLE_ROWS);
    rows.sort((a, b) => a.start - b.start);
    const note = total > rows.length ? `The ${count(rows.length)} longest of ${count(total)} activities and gaps in view.` : `${count(total)} activities and gaps in view.`;
    const table = plainTable(["lane", "what", "starts", "takes"], rows.map(({ lane, i, start, dur }) => [lane.label, lane.text(i), instant(start - zero, 1), duration(dur)]), 2);
    return [element("p", note, "quiet"), table];
  }

  /** Another scene with the same lanes. @param {Scene} scene */
  setScene(scene) {
    this.scene = scene;
    this.lanes = new Lanes(scene, this.frames);
    this.choose(null);
    this.layout();
  }

  /** @param {boolean} shown */
  setFrames(shown) {
    this.frames = shown;
    const kept = this.chosen;
    this.lanes = new Lanes(this.scene, shown);
    this.chosen = kept ? this.lanes.find(kept.lane.source, kept.index) : null;
    this.layout();
  }

  /** Pointers: click chooses, dragging moves, the wheel zooms; on touch two fingers do. */
  bind() {
    const at = (/** @type {MouseEvent} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return { share: (event.clientX - box.left) / box.width, y: event.clientY - box.top + this.box.scrollTop };
    };
    this.canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move((event.deltaX || event.deltaY) / 800);
      else if (event.ctrlKey || event.metaKey || document.activeElement === this.box) this.zoom(Math.exp(event.deltaY / 400), at(event).share);
      else return; // the page scrolls until the timeline has been clicked
      event.preventDefault();
    }, { passive: false });
    /** @type {Map<number, number>} */
    const fingers = new Map();
    let moved = 0, spread = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event.clientX);
      this.canvas.setPointerCapture(event.pointerId);
      moved = 0;
      spread = 0;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (before === undefined) return this.hover(at(event), event);
      fingers.set(event.pointerId, event.clientX);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()], wide = Math.max(Math.abs(a - b), 10);
        if (spread) this.zoom(spread / wide);
        spread = wide;
        moved = 99;
      } else {
        moved += Math.abs(event.clientX - before);
        if (moved > 3) this.move((before - event.clientX) / this.width);
      }
    });
    for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) {
      this.canvas.addEventListener(kind, (event) => {
        fingers.delete(event.pointerId);
        if (kind === "pointercancel" || moved > 3) return;
        const point = at(event), length = this.view.end - this.view.start;
        this.choose(this.lanes.hit(this.view.start + point.share * length, point.y, (length / this.width) * 2));
        this.box.focus({ preventScroll: true });
      });
    }
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("dblclick", () => this.chosen && this.choose(this.chosen, true));
    this.box.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => this.layout()).observe(this.box);
  }

  /** @param {{share: number, y: number}} point @param {MouseEvent} event */
  hover(point, event) {
    const length = this.view.end - this.view.start;
    const item = this.lanes.hit(this.view.start + point.share * length, point.y, length / this.width);
    if (!item) return hideTip();
    const begin = `${instant(item.start - this.scene.window[0], 1)} into the window`;
    showTip(event, item.lane.text(item.index), [`${duration(item.end - item.start)}, ${begin}`, item.lane.label]);
  }
}
