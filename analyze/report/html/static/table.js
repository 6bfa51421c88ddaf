// Tables: sort by a column, search, show all rows, copy as CSV.

import { element } from "./draw.js";
import { count } from "./units.js";

const LONG = 8, SHOWN = 200;

/** Give every table of the report its tools. */
export function bindTables() {
  for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("figure.table"))) bindFigure(figure);
}

/** @param {HTMLElement} figure */
function bindFigure(figure) {
  const table = /** @type {HTMLTableElement} */ (figure.querySelector("table"));
  const body = table.tBodies[0], rows = [...body.rows];
  const tools = element("div", undefined, "tabletools");
  let all = rows.length <= SHOWN;
  const search = element("input");
  search.type = "search";
  search.placeholder = "search";
  search.setAttribute("aria-label", `Search ${figure.querySelector("figcaption")?.textContent ?? "the table"}`);
  const more = element("button", `Show all ${count(rows.length)}`);
  more.type = "button";
  const update = () => {
    const sought = search.value.trim().toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      const fits = !sought || (row.textContent ?? "").toLowerCase().includes(sought);
      row.hidden = !fits || (!all && shown >= SHOWN);
      if (!row.hidden) shown += 1;
    }
    more.hidden = all;
  };
  search.addEventListener("input", update);
  more.addEventListener("click", () => {
    all = true;
    update();
  });
  if (rows.length > LONG) tools.append(search);
  tools.append(more, copyButton(table));
  figure.querySelector(".scroll")?.before(tools);
  [...(table.tHead?.rows[0].cells ?? [])].forEach((cell, i) => rows[0]?.cells[i]?.className !== "barcell" && bindSort(table, cell, i, update));
  update();
}

/**
 * A caption that sorts by its column: the largest number first, words from A on.
 * @param {HTMLTableElement} table
 * @param {HTMLTableCellElement} head
 * @param {number} column
 * @param {() => void} update
 */
function bindSort(table, head, column, update) {
  const button = element("button", undefined, "sort");
  button.type = "button";
  button.title = "Sort by this column";
  button.setAttribute("aria-label", `Sort by ${(head.textContent ?? "").trim() || `column ${column + 1}`}`);
  head.append(" ", button);
  head.addEventListener("click", (event) => {
    if (/** @type {Element} */ (event.target).closest("a")) return;
    const body = table.tBodies[0], rows = [...body.rows];
    const isNumber = rows.some((row) => row.cells[column]?.dataset.v !== undefined);
    const down = head.getAttribute("aria-sort") === null ? isNumber : head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead?.rows[0].cells ?? []) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => compare(a.cells[column], b.cells[column], isNumber) * (down ? -1 : 1));
    body.append(...rows);
    update();
  });
}

/**
 * @param {HTMLTableCellElement} a
 * @param {HTMLTableCellElement} b
 * @param {boolean} isNumber
 */
function compare(a, b, isNumber) {
  if (!isNumber) return (a.textContent ?? "").localeCompare(b.textContent ?? "");
  return Number(a.dataset.v ?? -Infinity) - Number(b.dataset.v ?? -Infinity);
}

/** @param {HTMLTableElement} table */
function copyButton(table) {
  const button = element("button", "Copy as CSV");
  button.type = "button";
  button.addEventListener("click", async () => {
    const text = csv(table);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = save(text, "table.csv", "text/csv") ? "Saved" : "Not copied";
    }
    setTimeout(() => (button.textContent = "Copy as CSV"), 2000);
  });
  return button;
}

/**
 * The rows in sight, numbers exact. A cell that a spreadsheet would take for a formula gets an apostrophe.
 * @param {HTMLTableElement} table
 */
export function csv(table) {
  const lines = [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map((cell) => {
    const text = cell.dataset.v ?? (cell.textContent ?? "").trim();
    const safe = cell.dataset.v === undefined && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(","));
  return `${lines.join("\n")}\n`;
}

/**
 * Offer a text as a file.
 * @param {string} text
 * @param {string} name
 * @param {string} type
 */
export function save(text, name, type) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return true;
}
