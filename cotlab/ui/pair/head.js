// What differs between two runs (head.py): a sentence, and each tested metric with its paired difference on one axis of points.
// All texts are set with textContent, never as HTML.
const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const HEIGHT = 44;
const at = (share) => `${50 + Math.max(-1, Math.min(1, share)) * 44}%`;

function axis() {
  const svg = shape("svg", { width: "100%", height: 18, "aria-hidden": "true" });
  for (const [share, text] of [[-1, "−100"], [-0.5, "−50"], [0, "0"], [0.5, "+50"], [1, "+100"]]) {
    const label = shape("text", { x: at(share), y: 13, class: Math.abs(share) === 0.5 ? "tick half" : "tick", "text-anchor": "middle" });
    label.textContent = text;
    svg.append(label);
  }
  return svg;
}

// Positions are shares of the width, so that the picture fits every page.
function bar(row) {
  const svg = shape("svg", { width: "100%", height: HEIGHT, role: "img", "aria-label": row.name, class: row.kind });
  for (const share of [-1, -0.5, 0, 0.5, 1]) {
    svg.append(shape("line", { x1: at(share), x2: at(share), y1: 0, y2: HEIGHT, class: share ? "grid" : "zero" }));
  }
  const y = HEIGHT / 2;
  if (row.point !== null) { // below the interval, which may be shorter than the mark
    const mark = shape("svg", { x: at(row.point), y, overflow: "visible" });
    mark.append(row.kind === "same" ? shape("circle", { r: 6, class: "mark" }) : shape("path", { d: "M0 -8 l8 8 l-8 8 l-8 -8 z", class: "mark" }));
    svg.append(mark);
  }
  if (row.bounds) {
    const [lo, hi] = row.bounds.map(at);
    svg.append(shape("line", { x1: lo, x2: hi, y1: y, y2: y, class: "bound" }));
    for (const x of [lo, hi]) svg.append(shape("line", { x1: x, x2: x, y1: y - 5, y2: y + 5, class: "bound" }));
  }
  return svg;
}

function cell(value, strong) {
  const box = node("td", "number");
  box.append(node(strong ? "b" : "span", "", value.text), " ", node("small", "", value.small));
  return box;
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".pair-head");
  root.classList.toggle("dark", isDark(root));
  root.replaceChildren(node("h1", data.heading.length > 160 ? "long" : "", data.heading));
  if (data.detail) root.append(node("p", "detail", data.detail));
  if (!data.differences.length) return;
  const table = node("table", "", undefined, { "aria-label": "Tested metrics of both runs" });
  const head = node("tr"), top = node("thead"), body = node("tbody");
  head.append(node("th", "", data.suite, { scope: "col" }));
  for (const title of data.columns) {
    const at = title.lastIndexOf(", "), column = node("th", "number", `${title.slice(0, at + 1).replaceAll("-", "\u2011")} `, { scope: "col" });
    column.append(node("span", "unit", title.slice(at + 2)));
    head.append(column);
  }
  const axisCell = node("th", "axis");
  axisCell.append(node("span", "spoken", "Difference on an axis of points"), axis());
  head.append(axisCell);
  top.append(head);
  for (const row of data.differences) {
    const line = node("tr"), name = node("th", "name", row.label, { scope: "row" });
    name.append(node("small", "", row.note));
    const picture = node("td", "axis");
    picture.append(bar(row));
    line.append(name, cell(row.base), cell(row.other), cell(row.difference, true), picture);
    body.append(line);
  }
  table.append(top, body);
  const scroll = node("div", "scroll");
  scroll.append(table);
  root.append(scroll, node("p", "caption", data.caption));
}
