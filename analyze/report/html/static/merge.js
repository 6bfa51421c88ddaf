// Two scenes as one: the second one's lanes below the first one's, its times shifted so that both begin a step together.

/** @typedef {import("./data.js").Scene} Scene */

const THREADS = 1_000_000; // the second scene's threads are numbered from here on

/**
 * @param {Scene} a
 * @param {Scene} b
 * @param {number} shift added to the times of b
 * @param {string[]} labels
 * @returns {Scene}
 */
export function merged(a, b, shift, labels) {
  const names = a.names.length, nodes = a.stacks.name.length;
  const name = (/** @type {number} */ i) => (i < 0 ? i : i + names), node = (/** @type {number} */ i) => (i < 0 ? i : i + nodes);
  const thread = (/** @type {number} */ i) => (i < 0 ? i : i + THREADS);
  const moved = (/** @type {Float64Array} */ times) => times.map((time) => time + shift);
  const none = () => new Array(nodes).fill(0), rest = () => new Array(b.stacks.name.length).fill(0);
  const stacks = {
    parent: Float64Array.from([...a.stacks.parent, ...b.stacks.parent.map(node)]),
    name: [...a.stacks.name, ...b.stacks.name.map(name)], kind: [...a.stacks.kind, ...b.stacks.kind],
    calls: [...a.stacks.calls, ...b.stacks.calls],
    host: [...none(), ...b.stacks.host], device: [...none(), ...b.stacks.device],
    hostBefore: [...a.stacks.host, ...rest()], deviceBefore: [...a.stacks.device, ...rest()],
  };
  const devices = b.devices.map((device) => ({
    ...device, label: `${labels[1]}: ${device.label}`,
    window: device.window.map((time) => time + shift),
    queue: { ...device.queue, time: moved(device.queue.time) },
    gaps: { ...device.gaps, start: moved(device.gaps.start), thread: device.gaps.thread.map(thread) },
    streams: device.streams.map((stream) => ({
      ...stream, start: moved(stream.start), name: stream.name.map(name), shape: stream.shape.map(name),
      detail: stream.detail.map(name), node: stream.node.map(node), thread: stream.thread.map(thread),
    })),
  }));
  const spans = (/** @type {import("./data.js").Spans} */ one) => ({ ...one, start: moved(one.start), name: one.name.map(name) });
  const threads = b.threads.map((one) => ({
    ...one, thread: thread(one.thread), label: `${labels[1]}: ${one.label}`, start: moved(one.start),
    node: one.node.map(node), blocking: spans(one.blocking), loading: spans(one.loading),
  }));
  return {
    ...a, names: [...a.names, ...b.names], stacks,
    window: [Math.min(a.window[0], b.window[0] + shift), Math.max(a.window[1], b.window[1] + shift)],
    devices: [...a.devices.map((one) => ({ ...one, label: `${labels[0]}: ${one.label}` })), ...devices],
    threads: [...a.threads.map((one) => ({ ...one, label: `${labels[0]}: ${one.label}` })), ...threads],
    memory: [...a.memory.map((one) => ({ ...one, label: `${labels[0]}: ${one.label}` })),
      ...b.memory.map((one) => ({ ...one, label: `${labels[1]}: ${one.label}`, time: moved(one.time) }))],
    places: {},
    otherSteps: { name: b.steps.name.map(name), start: moved(b.steps.start), dur: b.steps.dur },
  };
}

/**
 * Where both can be aligned: steps by their place, and the windows' starts.
 * @param {Scene} a
 * @param {Scene} b
 */
export function alignments(a, b) {
  const found = [{ label: "the first activity", shift: a.window[0] - b.window[0] }];
  const count = Math.min(a.steps.name.length, b.steps.name.length);
  for (let i = 0; i < count; i++) {
    const label = `${a.names[a.steps.name[i]]} of A and ${b.names[b.steps.name[i]]} of B`;
    found.push({ label, shift: a.steps.start[i] - b.steps.start[i] });
  }
  return found;
}
