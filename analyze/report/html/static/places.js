// Places on the timeline: gaps by cause, and where a finding can be seen.

import { OP } from "./data.js";

/** @typedef {import("./data.js").Scene} Scene */
/** @typedef {{start: number, end: number, source: any, index: number}} Place A row of one of the scene's tables. */

/**
 * The gaps of all devices, in order of time.
 * @param {Scene} scene
 * @param {string[]} [states] only those with most of their time in one of these
 * @returns {Place[]}
 */
export function gapsOf(scene, states) {
  const known = states?.map((id) => scene.states.findIndex((one) => one.id === id));
  const found = [];
  for (const { gaps } of scene.devices) {
    for (let index = 0; index < gaps.dur.length; index++) {
      if (!known || known.includes(gaps.state[index])) found.push(placeOf(gaps, index));
    }
  }
  return found.sort((a, b) => a.start - b.start);
}

/**
 * Where a finding can be seen, what takes longest first: gaps, else activities, else calls.
 * @param {Scene} scene
 * @param {string} id
 * @returns {Place[]}
 */
export function placesOf(scene, id) {
  const wanted = scene.places[id];
  if (!wanted) return [];
  const names = new Set(wanted.names);
  let found = wanted.states.length ? gapsOf(scene, wanted.states) : [];
  if (!found.length) found = activitiesOf(scene, names, wanted.categories);
  if (!found.length) found = callsOf(scene, names);
  return found.sort((a, b) => b.end - b.start - (a.end - a.start));
}

/** @param {Scene} scene @param {Set<number>} names of kernels or of the ops that launched them @param {string[]} categories */
function activitiesOf(scene, names, categories) {
  const kinds = new Set(categories.map((id) => scene.categories.findIndex((one) => one.id === id))), found = [];
  for (const { streams } of scene.devices) {
    for (const source of streams) {
      for (let index = 0; index < source.dur.length; index++) {
        const named = names.has(source.name[index]) || names.has(opsOf(scene, source)[index]);
        if (named || kinds.has(source.category[index])) found.push(placeOf(source, index));
      }
    }
  }
  return found;
}

/** @param {Scene} scene @param {Set<number>} names */
function callsOf(scene, names) {
  const found = [];
  for (const source of scene.threads) {
    for (let index = 0; index < source.node.length; index++) {
      if (source.node[index] >= 0 && names.has(scene.stacks.name[source.node[index]])) found.push(placeOf(source, index));
    }
  }
  return found;
}

/** @param {any} source @param {number} index @returns {Place} */
function placeOf(source, index) {
  return { start: source.start[index], end: source.start[index] + source.dur[index], source, index };
}

/** The number of the name of the innermost op at or around a node, -1 without one. @param {Scene} scene @param {number} node */
function opOf(scene, node) {
  for (let at = node; at >= 0; at = scene.stacks.parent[at]) {
    if (scene.stacks.kind[at] === OP) return scene.stacks.name[at];
  }
  return -1;
}

/** @type {WeakMap<object, Int32Array>} */
const KNOWN = new WeakMap();

/**
 * Of each activity of a stream the number of its op's name, -1 without one.
 * @param {Scene} scene
 * @param {import("./data.js").Slices} source
 */
export function opsOf(scene, source) {
  let found = KNOWN.get(source);
  if (!found) KNOWN.set(source, found = Int32Array.from(source.node, (node) => opOf(scene, node)));
  return found;
}
