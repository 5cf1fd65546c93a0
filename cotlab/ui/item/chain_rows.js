// Rows of a chain, shared by the views of it (chain_view.js, reader.js). All texts are set with textContent, never as HTML.
function node(tag, name, text, attributes = {}) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Whether the theme is dark: CSS alone cannot tell, as the theme need not be the system's.
function isDark(element) {
  const probe = node("i");
  probe.style.color = "var(--st-background-color)";
  element.append(probe);
  const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  probe.remove();
  return red * 0.299 + green * 0.587 + blue * 0.114 < 128;
}

// Pieces of two compared texts: what was removed is struck through, what was added is underlined.
function changedText(pieces, name) {
  const text = node("span", name);
  for (const [kind, part] of pieces) {
    text.append(node({ removed: "del", added: "ins" }[kind] ?? "span", "", part));
    if (kind === "removed") text.append(" ");
  }
  return text;
}

// A question; what somebody suggests in it is underlined.
function questionText(tag, pieces) {
  const length = pieces.reduce((sum, [text]) => sum + text.length, 0);
  const made = node(tag, length > 400 ? "long" : "");
  for (const [text, isSuggestion] of pieces) made.append(isSuggestion ? node("u", "", text, { title: "Somebody suggests an answer" }) : text);
  return made;
}

function pipBar([filled, total]) {
  const bar = node("span", "pips", undefined, { "aria-hidden": "true" });
  for (let k = 0; k < total; k += 1) bar.append(node("i", k < filled ? "filled" : ""));
  return bar;
}

// One row (``TextRow`` in chain.py): a label, the text, and a score; its tint is a magnitude from 0 to 1 in one hue.
function chainRow(block, clickable, selected) {
  const row = node(clickable ? "button" : "div", "row" + (selected ? " selected" : ""));
  if (clickable) {
    row.type = "button";
    row.dataset.index = block.index;
    row.setAttribute("aria-pressed", String(selected));
  }
  const bar = node("span", "bar");
  if (block.shade) {
    bar.style.background = block.shade;
    row.style.setProperty("--tint", block.shade);
  }
  if (block.tint !== null && block.tint !== undefined) {
    row.classList.add("tinted");
    if (!block.pips && !block.score) row.classList.add("plain");
    row.style.setProperty("--share", block.tint);
  }
  const text = block.changes?.length ? changedText(block.changes, "text") : node("span", "text");
  if (block.changes?.length) {
    row.classList.add("compared");
  } else if (block.pieces?.length) {
    for (const piece of block.pieces) {
      const part = node(piece.shade ? "mark" : "span", "", piece.text);
      if (piece.shade) part.style.setProperty("--mark", piece.shade);
      if (piece.hint) part.title = piece.hint;
      text.append(part);
    }
  } else {
    text.textContent = block.text.slice(block.skipped ?? 0);
  }
  if (block.hint) row.title = block.hint;
  row.append(bar, node("span", "label", block.label), text);
  if (block.pips) row.append(pipBar(block.pips));
  row.append(node("span", "score", block.score ?? ""));
  return row;
}

// What is known of an item (``item_facts`` in header.py): a sign where an answer is right or wrong, and pieces of text, some strong.
function factList(facts) {
  const list = node("p", "facts");
  for (const fact of facts) {
    const entry = node("span", fact.kind);
    if (fact.sign) entry.append(node("span", "sign", fact.sign, { "aria-hidden": "true" }), " ");
    for (const [text, strong] of fact.parts) entry.append(node(strong ? "b" : "span", "", text));
    list.append(entry);
  }
  return list;
}

// Whether a key press belongs to a text field.
function isTyping(event) {
  const target = event.composedPath()[0];
  return target instanceof Element && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
