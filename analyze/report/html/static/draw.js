// Colours and patterns, and the primitives that all canvases share.

/** @typedef {Record<"page"|"card"|"ink"|"quiet"|"line"|"rail"|"accent"|"tile"|"tileInk"|"bar"|"mark", string>} Theme */

/** The colours of the theme in force. @returns {Theme} */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    page: get("page"), card: get("card"), ink: get("ink"), quiet: get("quiet"), line: get("line"), rail: get("rail"),
    accent: get("accent"), tile: get("tile"), tileInk: get("tile-ink"), bar: get("bar"), mark: get("mark"),
  };
}

const TILE = 8;

/**
 * The patterns of idle time, drawn from the page's own SVG patterns.
 * @param {CanvasRenderingContext2D} context
 * @param {{id: string}[]} states
 * @param {Theme} theme
 */
export function readPatterns(context, states, theme) {
  return states.map(({ id }) => {
    const tile = document.createElement("canvas");
    const ratio = devicePixelRatio || 1;
    tile.width = tile.height = Math.round(TILE * ratio);
    const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.scale(tile.width / TILE, tile.width / TILE);
    pen.fillStyle = theme.tile;
    pen.fillRect(0, 0, TILE, TILE);
    const path = document.querySelector(`#idle-${id} path`);
    if (path) {
      const shape = new Path2D(path.getAttribute("d") ?? "");
      pen.strokeStyle = pen.fillStyle = theme.tileInk;
      pen.lineWidth = 1.2;
      if (path.classList.contains("solid")) pen.fill(shape);
      else pen.stroke(shape);
    }
    const pattern = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
    pattern.setTransform(new DOMMatrix().scale(1 / (tile.width / TILE)));
    return pattern;
  });
}

/**
 * A canvas of the size of its box, in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sized(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/**
 * Black or white, whichever reads better on a colour.
 * @param {string} colour as #rrggbb
 */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

/**
 * A colour for a name, the same every time; all are light enough for black letters.
 * @param {string} name
 */
export function tint(name) {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  const [r, g, b] = hsl(((hash % 360) + 360) % 360, 0.45, 0.72);
  return `#${[r, g, b].map((c) => Math.round(c * 255).toString(16).padStart(2, "0")).join("")}`;
}

/** @param {number} hue @param {number} saturation @param {number} light */
function hsl(hue, saturation, light) {
  const a = saturation * Math.min(light, 1 - light);
  /** @param {number} n */
  const f = (n) => {
    const k = (n + hue / 30) % 12;
    return light - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  };
  return [f(0), f(8), f(4)];
}

/**
 * A text inside a box, cut where it does not fit.
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
export function fitted(context, text, x, y, width) {
  const most = Math.floor(width / 6.2);
  if (most < 3) return;
  context.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, y);
}

/**
 * An element with a text and perhaps a class.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [text]
 * @param {string} [name]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

/**
 * A table of texts; the last columns, from `numbers` on, are numbers.
 * @param {string[]} heads
 * @param {(string|number)[][]} rows
 * @param {number} numbers
 */
export function plainTable(heads, rows, numbers) {
  const table = element("table", undefined, "data");
  const head = table.createTHead().insertRow();
  heads.forEach((text, i) => {
    const cell = element("th", text, i >= numbers ? "num" : "");
    cell.scope = "col";
    head.append(cell);
  });
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, i) => line.append(element("td", String(value), i >= numbers ? "num" : "")));
  }
  return table;
}

/**
 * A few lines beside the pointer.
 * @param {MouseEvent} event
 * @param {string} title
 * @param {string[]} lines
 */
export function showTip(event, title, lines) {
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  tip.replaceChildren(element("b", title), ...lines.map((line) => element("p", line)));
  tip.hidden = false;
  const x = event.clientX + 14 + tip.offsetWidth > innerWidth ? Math.max(event.clientX - tip.offsetWidth - 8, 4) : event.clientX + 14;
  const y = event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 16;
  tip.style.left = `${x + scrollX}px`;
  tip.style.top = `${y + scrollY}px`;
}

export function hideTip() {
  const tip = document.getElementById("tip");
  if (tip) tip.hidden = true;
}
