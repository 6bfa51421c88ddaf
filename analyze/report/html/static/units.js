// Numbers as the report prints them.

const TIMES = /** @type {const} */ ([["s", 1e9], ["ms", 1e6], ["µs", 1e3]]);
const SIZES = /** @type {const} */ ([["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]);

/**
 * A value with three significant digits and its own unit.
 * @param {number} value
 * @param {readonly (readonly [string, number])[]} units largest first
 * @param {string} smallest
 */
function scaled(value, units, smallest) {
  for (const [symbol, size] of units) {
    if (Math.abs(value) >= size) {
      const amount = value / size;
      const whole = String(Math.trunc(Math.abs(amount))).length;
      return `${amount.toFixed(Math.max(3 - whole, 0))} ${symbol}`;
    }
  }
  return `${Math.round(value)} ${smallest}`;
}

/** @param {number} ns */
export function duration(ns) {
  return scaled(ns, TIMES, "ns");
}

/** @param {number} bytes */
export function memory(bytes) {
  return scaled(bytes, SIZES, "B");
}

/** @param {number} value */
export function count(value) {
  return value.toLocaleString("en-US");
}

/**
 * An instant to the nanosecond: as many digits as the view can tell apart.
 * @param {number} ns
 * @param {number} step what may be rounded away
 */
export function instant(ns, step) {
  const [symbol, size] = TIMES.find(([, unit]) => Math.abs(ns) >= unit) ?? ["ns", 1];
  const digits = Math.max(0, Math.ceil(Math.log10(size / Math.max(step, 1))));
  return `${(ns / size).toFixed(digits)} ${symbol}`;
}

/**
 * Round places for marks on an axis.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 */
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  const step = Math.max([1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? power, 1);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return { step, at: found };
}
