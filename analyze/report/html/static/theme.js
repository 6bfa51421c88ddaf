// Dark and light, definitions where the pointer or the focus is, and what print needs.

import { element } from "./draw.js";

const ROOT = document.documentElement;

/** @returns {boolean} */
function isDark() {
  return ROOT.dataset.theme ? ROOT.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * The button between dark and light; the system decides until it is pressed.
 * @param {() => void} changed
 */
export function bindTheme(changed) {
  document.getElementById("theme")?.addEventListener("click", () => {
    ROOT.dataset.theme = isDark() ? "light" : "dark";
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** Definitions: a linked word shows its own below it. */
export function bindTips() {
  const tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
  const show = (/** @type {Event} */ event) => {
    const word = /** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest?.("a.term"));
    if (!word) return hide();
    const term = document.getElementById((word.getAttribute("href") ?? "").slice(1));
    if (!term?.nextElementSibling) return;
    tip.replaceChildren(element("b", term.textContent ?? ""));
    tip.append(element("p", term.nextElementSibling.textContent?.trim() ?? ""));
    tip.hidden = false;
    const box = word.getBoundingClientRect(), wide = tip.offsetWidth, tall = tip.offsetHeight;
    const left = Math.min(Math.max(box.left, 8), Math.max(ROOT.clientWidth - wide - 8, 8));
    const below = box.bottom + 6 + tall < innerHeight || box.top < tall;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(below ? box.bottom + 6 : box.top - tall - 6) + scrollY}px`;
    word.setAttribute("aria-describedby", "tip");
  };
  const hide = () => {
    tip.hidden = true;
    document.querySelectorAll("a.term[aria-describedby]").forEach((one) => one.removeAttribute("aria-describedby"));
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

/** Print opens what is folded, and folds it again. */
export function bindPrint() {
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details:not([open])"))];
    opened.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((one) => (one.open = false)));
  document.getElementById("print")?.addEventListener("click", () => print());
}
