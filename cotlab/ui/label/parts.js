// Parts of the labelling component (widget.js) that have no state of its items. All texts are set with textContent, never as HTML.

const GUIDELINES_CLOSED = "cotlab-guidelines-closed";

function el(tag, name, text, more = {}) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

// The digit or letter printed on a key that types another character: digits that need Shift, or another alphabet.
function printedKey({ key, code, shiftKey }) {
  const digit = !shiftKey && /^Digit([0-9])$/.exec(code);
  const letter = key.length === 1 && key > "\x7f" && /^Key([A-Z])$/.exec(code);
  return (digit || letter || ["", ""])[1].toLowerCase();
}

// What else this keyboard has on the key of a letter or digit, as "&" on the 1 of a French one; "" where nothing, or not known.
const KEYBOARD = { layout: null };
function otherCharacter(key) {
  const typed = KEYBOARD.layout?.get(/[0-9]/.test(key) ? `Digit${key}` : `Key${key.toUpperCase()}`);
  if (!typed || typed.toLowerCase() === key.toLowerCase()) return "";
  return /[0-9]/.test(key) || typed > "\x7f" ? typed.toUpperCase() : ""; // a Latin letter elsewhere is found by its own name
}

function kbd(key) {
  return el("kbd", "", [key.toUpperCase(), otherCharacter(key)].filter(Boolean).join(" "), { "aria-hidden": "true" });
}

// The guidelines, a section each; whether they are open is kept in this browser.
function guidelineBox(sections, key) {
  const box = el("details", "desk-guidelines");
  const title = el("summary", "", "Guidelines", { "aria-keyshortcuts": key });
  title.append(kbd(key));
  box.append(title);
  for (const [index, [name, text]] of sections.entries()) {
    const section = el("details", "", "", { name: "desk-guideline", ...(index ? {} : { open: "" }) }); // one is open at a time
    section.append(el("summary", "", name), el("p", "", text, { dir: "auto", tabindex: "0" }));
    box.append(section);
  }
  try {
    box.open = localStorage.getItem(GUIDELINES_CLOSED) === null;
  } catch { box.open = true; }
  box.addEventListener("toggle", () => {
    try {
      if (box.open) localStorage.removeItem(GUIDELINES_CLOSED);
      else localStorage.setItem(GUIDELINES_CLOSED, "1");
    } catch { /* without storage they are open at each visit */ }
  });
  return box;
}

// The labels of several raters, one beside the other.
function raterTable({ raters, rows }) {
  const frame = el("div", "desk-raters"), table = el("table"), head = el("tr");
  head.append(el("td"));
  for (const rater of raters) head.append(el("th", "", rater, { scope: "col", dir: "auto" }));
  table.append(head);
  for (const [name, differs, cells] of rows) {
    const row = el("tr", differs ? "desk-differs" : "");
    row.append(el("th", "", name, { scope: "row" }));
    for (const cell of cells) row.append(el("td", "", cell, { dir: "auto" }));
    table.append(row);
  }
  frame.append(table);
  return frame;
}

