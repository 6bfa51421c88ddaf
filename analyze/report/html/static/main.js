// Everything together: unpack the data, make the views, listen to buttons and keys.

import { readScene, unpack } from "./data.js";
import { bindRoofline, drawHistogram } from "./charts.js";
import { Icicle } from "./icicle.js";
import { alignments, merged } from "./merge.js";
import { gapsOf, placesOf } from "./places.js";
import { bindTables, csv, save } from "./table.js";
import { bindPrint, bindTheme, bindTips } from "./theme.js";
import { Timeline } from "./timeline.js";

/** What a key or a button of the toolbar does. @param {Timeline} timeline @returns {Record<string, () => void>} */
function actions(timeline) {
  return {
    fit: () => timeline.fit(),
    in: () => timeline.zoom(0.5),
    out: () => timeline.zoom(2),
    left: () => timeline.move(-0.25),
    right: () => timeline.move(0.25),
    longest: () => timeline.longest(),
    next: () => timeline.nextGap(1),
    previous: () => timeline.nextGap(-1),
    found: () => timeline.nextFound(),
  };
}

const KEYS = /** @type {Record<string, string>} */ ({ f: "fit", w: "in", s: "out", a: "left", d: "right", l: "longest", n: "next", p: "previous" });

/** @param {Timeline} timeline */
function bindTimeline(timeline) {
  const does = actions(timeline);
  const search = /** @type {HTMLInputElement} */ (document.getElementById("find"));
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-act]"))) {
    button.addEventListener("click", () => does[button.dataset.act ?? ""]());
  }
  search.addEventListener("input", () => timeline.seek(search.value));
  search.addEventListener("keydown", (event) => event.key === "Enter" && timeline.nextFound());
  const frames = /** @type {HTMLInputElement} */ (document.getElementById("frames"));
  frames.addEventListener("change", () => timeline.setFrames(frames.checked));
  if (!timeline.scene.stacks.kind.some((kind) => kind > 2)) frames.closest("label")?.remove();
  document.addEventListener("keydown", (event) => {
    const at = /** @type {Element} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || at.matches("input, select, textarea")) return;
    if (at.id === "lanes" && arrows(timeline, event.key)) return event.preventDefault();
    if (event.key === "/") {
      event.preventDefault();
      return search.focus();
    }
    const action = KEYS[event.key.toLowerCase()];
    if (action) does[action]();
  });
}

/** Arrows, Enter and Backspace on the timeline itself. @param {Timeline} timeline @param {string} key */
function arrows(timeline, key) {
  const { chosen } = timeline;
  if (key === "ArrowRight") timeline.step(1, 0);
  else if (key === "ArrowLeft") timeline.step(-1, 0);
  else if (key === "ArrowDown") timeline.step(0, 1);
  else if (key === "ArrowUp") timeline.step(0, -1);
  else if (key === "Enter" && chosen) timeline.show(chosen.start - (chosen.end - chosen.start) / 4, chosen.end + (chosen.end - chosen.start) / 4);
  else if (key === "Backspace") timeline.fit();
  else return false;
  return true;
}

/** Columns that select one step. @param {Timeline} timeline */
function bindSteps(timeline) {
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-step-name]"));
  /** @type {Map<string, number>} */
  const seen = new Map(); // steps may share a name: the second button of a name is its second step
  for (const button of buttons) {
    const name = button.dataset.stepName ?? "", key = `${button.dataset.side ?? ""} ${name}`;
    const turn = seen.get(key) ?? 0;
    seen.set(key, turn + 1);
    button.addEventListener("click", () => {
      const { names } = timeline.scene, steps = (button.dataset.side === "B" && timeline.scene.otherSteps) || timeline.scene.steps;
      const i = steps.name.map((_, at) => at).filter((at) => names[steps.name[at]] === name)[turn];
      if (i === undefined) return;
      timeline.show(steps.start[i], steps.start[i] + steps.dur[i]);
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    });
  }
}

/** Findings and rows of tables that lead to a place on the timeline. @param {Timeline} timeline */
function bindJumps(timeline) {
  const scroll = () => document.getElementById("timeline")?.scrollIntoView({ block: "start", behavior: "smooth" });
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("[data-finding]"))) {
    const places = placesOf(timeline.scene, button.dataset.finding ?? "");
    let at = -1;
    if (!places.length) {
      button.closest(".places")?.remove();
      continue;
    }
    button.addEventListener("click", () => {
      at = (at + 1) % places.length;
      timeline.go(places[at]);
      button.textContent = places.length > 1 ? `Next place (${at + 1} of ${places.length})` : "Show on the timeline";
      scroll();
    });
  }
  for (const one of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-at]"))) {
    const start = Number(one.dataset.at), length = Number(one.dataset.for ?? 0);
    one.tabIndex = 0;
    const go = () => {
      const gap = gapsOf(timeline.scene).find((place) => place.start === start);
      if (gap) timeline.go(gap);
      else timeline.show(start - Math.max(length, 5_000), start + Math.max(length, 5_000) * 2);
      scroll();
    };
    one.addEventListener("click", go);
    if (one.tagName !== "BUTTON") one.addEventListener("keydown", (event) => event.key === "Enter" && go());
  }
  for (const part of /** @type {NodeListOf<SVGElement|HTMLElement>} */ (document.querySelectorAll("#ledger [data-state]"))) {
    const places = gapsOf(timeline.scene, [part.dataset.state ?? ""]).sort((a, b) => b.end - b.start - (a.end - a.start));
    let at = -1;
    const go = () => places.length && timeline.go(places[(at = (at + 1) % places.length)]);
    part.addEventListener("click", (event) => !(/** @type {Element} */ (event.target).closest("a")) && go());
    if (part.tagName !== "TR" || !places.length) continue;
    part.tabIndex = 0;
    part.addEventListener("keydown", (event) => /** @type {KeyboardEvent} */ (event).key === "Enter" && event.target === part && go());
  }
}

/** Tables behind charts are made when they are opened, and again when the view changes. @param {string} id @param {() => Node[]} make */
function bindTable(id, make) {
  const details = /** @type {HTMLDetailsElement|null} */ (document.getElementById(id));
  const fill = () => details?.open && details.querySelector(".scroll")?.replaceChildren(...make());
  details?.addEventListener("toggle", fill);
  return fill;
}

function bindPage() {
  const keys = /** @type {HTMLDialogElement} */ (document.getElementById("key-list"));
  document.querySelectorAll("[data-needs-script]").forEach((one) => one.removeAttribute("hidden"));
  document.getElementById("keys")?.addEventListener("click", () => keys.showModal());
  document.getElementById("json")?.addEventListener("click", async () => {
    const name = document.querySelector("h1 code")?.textContent ?? "report";
    save(await unpack("report-data"), `${name.replace(/[^\w.-]+/g, "_")}.report.json`, "application/json");
  });
  document.addEventListener("keydown", (event) => {
    if (/** @type {Element} */ (event.target).matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") keys.showModal();
    if (event.key.toLowerCase() === "t") document.getElementById("theme")?.click();
  });
  bindTips();
  bindPrint();
  bindTables();
}

/** The scene to draw; of a comparison both sides as one. @param {import("./data.js").Scene} raw @param {number} which alignment */
function sceneOf(raw, which) {
  if (!raw.pair) return raw;
  const [a, b] = raw.pair, at = alignments(a, b);
  return merged(a, b, at[Math.min(which, at.length - 1)].shift, raw.labels ?? ["A", "B"]);
}

/** The choice of what both sides of a comparison are aligned at. @param {import("./data.js").Scene} raw @param {Timeline} timeline */
function bindAlign(raw, timeline) {
  const select = /** @type {HTMLSelectElement|null} */ (document.getElementById("align"));
  if (!raw.pair || !select) return;
  alignments(raw.pair[0], raw.pair[1]).forEach(({ label }, i) => {
    const option = document.createElement("option");
    option.value = String(i);
    option.textContent = label;
    select.append(option);
  });
  select.value = String(Math.min(1, select.options.length - 1));
  select.addEventListener("change", () => timeline.setScene(sceneOf(raw, Number(select.value))));
}

/** The timeline with everything that leads to it. @param {import("./data.js").Scene} raw @param {(() => void)[]} redraw */
function makeTimeline(raw, redraw) {
  const timeline = new Timeline(sceneOf(raw, 1));
  bindTimeline(timeline);
  bindAlign(raw, timeline);
  bindSteps(timeline);
  bindJumps(timeline);
  bindRoofline(timeline);
  const lanes = bindTable("lane-table", () => timeline.table());
  const histogram = () => document.getElementById("histogram") && drawHistogram(timeline);
  document.getElementById("histogram-what")?.addEventListener("change", histogram);
  let later = 0;
  timeline.watchers.push(() => {
    clearTimeout(later);
    later = setTimeout(() => [histogram(), lanes()], 150);
  });
  histogram();
  redraw.push(() => timeline.layout());
  return timeline;
}

async function main() {
  bindPage();
  const raw = await readScene();
  /** @type {(() => void)[]} */
  const redraw = [];
  bindTheme(() => redraw.forEach((draw) => draw()));
  const timeline = raw && document.getElementById("lanes") ? makeTimeline(raw, redraw) : null;
  const icicle = raw && document.getElementById("icicle") ? new Icicle(sceneOf(raw, 1)) : null;
  if (icicle) {
    redraw.push(() => icicle.draw());
    icicle.watchers.push(bindTable("icicle-table", () => [icicle.table()]));
  }
  if (!timeline) document.querySelectorAll(".places").forEach((one) => one.remove());
  Object.assign(globalThis, { gpuledger: { timeline, icicle, csv } }); // for a reader's own questions, on the console
  document.documentElement.setAttribute("data-ready", "");
}

main();
