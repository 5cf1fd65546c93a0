// What happens to the answer when one step changes (reader.py): tabs of changes, the chain, and what is behind the chosen step.
// All texts are set with textContent, never as HTML. The choice (mode and step) is the component's trigger ``choice``: a trigger fires
// also where the same choice was made before, on another item or before Back. The server writes it into the address and sends the data
// of the chosen step.
const SVG = "http://www.w3.org/2000/svg";

function svgNode(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function isElsewhere(root) {
  const active = root.getRootNode().activeElement ?? document.activeElement;
  return active && active !== document.body && !root.contains(active) && document.activeElement !== document.body;
}

class Reader {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".reader");
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.observer = new ResizeObserver(() => this.drawArrows());
    this.observer.observe(this.root);
  }

  leave() {
    document.removeEventListener("keydown", this.onKey);
    this.observer.disconnect();
  }

  update({ data, setTriggerValue }) {
    const focused = this.root.getRootNode().activeElement;
    const wasRow = focused?.dataset?.index !== undefined, wasTab = focused?.dataset?.mode !== undefined;
    this.data = data;
    this.setTrigger = setTriggerValue;
    this.mode = data.mode;
    this.step = data.step;
    this.root.classList.toggle("dark", isDark(this.root));
    this.root.setAttribute("aria-busy", "false");
    this.render();
    if (wasRow) this.root.querySelector(".row.selected")?.focus({ preventScroll: true });
    if (wasTab) this.root.querySelector("[aria-selected=true]")?.focus({ preventScroll: true });
  }

  // Choose at once on the screen; the server sends the rest.
  choose(mode, step) {
    if (mode === this.mode && step === this.step) return;
    if (step !== this.step) {
      for (const row of this.root.querySelectorAll(".row")) {
        const selected = Number(row.dataset.index) === step;
        row.classList.toggle("selected", selected);
        row.setAttribute("aria-pressed", String(selected));
        if (selected && this.root.getRootNode().activeElement?.dataset?.index !== undefined) row.focus();
      }
    }
    if (mode !== this.mode) {
      for (const tab of this.root.querySelectorAll("[role=tab]")) tab.setAttribute("aria-selected", String(tab.dataset.mode === mode));
    }
    this.mode = mode;
    this.step = step;
    this.root.setAttribute("aria-busy", "true");
    this.setTrigger("choice", { mode, step });
  }

  key(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const name = event.key.toLowerCase();
    if ((name === "arrowdown" || name === "arrowup") && !isElsewhere(this.root)) {
      const step = this.step + (name === "arrowdown" ? 1 : -1);
      if (this.data.rows.some((row) => row.index === step)) this.choose(this.mode, step);
      event.preventDefault();
      return;
    }
    const tab = this.data.tabs.find(({ key }) => key === name);
    if (tab && tab.enabled) this.choose(tab.mode, this.step);
    else if (name === "?") this.toggleKeys();
    else if (this.data.targets[name]) {
      // a link or an expander of the page, by the class that its container has; a component in it names the key of its link
      const place = document.querySelector(`.st-key-${this.data.targets[name]}`);
      const named = [...(place?.querySelectorAll("*") ?? [])].map((host) => host.shadowRoot?.querySelector(`[data-key="${name}"]`));
      const target = named.find(Boolean) ?? place?.querySelector("a[href], summary, button");
      if (target) {
        target.click();
        target.focus({ preventScroll: true });
        target.scrollIntoView({ block: "center" });
      }
    }
  }

  toggleKeys() {
    const help = this.root.querySelector(".all-keys");
    help.hidden = !help.hidden;
  }

  render() {
    const { data } = this;
    this.root.replaceChildren(this.tabs(), node("p", "note", data.note));
    if (!data.note) this.root.lastChild.remove();
    if (data.finding) this.root.append(node("p", "finding", data.finding));
    const view = node("div", "view", undefined, { role: "tabpanel", "aria-label": `One step ${data.panel.verb}` });
    view.append(this.chain(), this.panel());
    if (data.later) view.append(this.later());
    this.root.append(view, this.keys());
    this.drawArrows();
  }

  tabs() {
    const box = node("div");
    const bar = node("div", "tabs");
    const list = node("div", "list", undefined, { role: "tablist", "aria-label": "What happens to the step" });
    bar.append(list);
    const folded = this.data.tabs.filter((tab) => tab.folded);
    const isOpen = this.unfolded || folded.some((tab) => tab.mode === this.mode);
    for (const tab of this.data.tabs) {
      if (tab.folded && !isOpen) continue;
      const button = node("button", "", undefined, { type: "button", role: "tab", "data-mode": tab.mode });
      button.setAttribute("aria-selected", String(tab.mode === this.mode));
      if (tab.key) button.append(node("kbd", "", tab.key));
      button.append(node("span", "", tab.label));
      if (!tab.enabled) {
        button.disabled = true;
        button.append(node("small", "", tab.reason));
      }
      button.onclick = () => this.choose(tab.mode, this.step);
      list.append(button);
    }
    box.append(node("p", "soft", this.data.question), bar);
    if (folded.length && !isOpen) {
      const more = node("button", "more", `More (${folded.length})`, { type: "button", "aria-expanded": "false" });
      more.onclick = () => {
        this.unfolded = true;
        this.render();
        this.root.querySelector(`[data-mode="${folded[0].mode}"]`).focus();
      };
      bar.append(more);
    }
    return box;
  }

  chain() {
    const left = node("div", "left");
    const frame = node("div", "frame");
    const list = node("ol", "chain", undefined, { "aria-label": this.data.chain });
    for (const block of this.data.rows) {
      const entry = node("li");
      const row = chainRow(block, true, block.index === this.step);
      row.setAttribute("aria-label", `Step ${block.label}: ${block.text.slice(block.skipped)} ${block.hint}`);
      row.onclick = () => this.choose(this.mode, block.index);
      entry.append(row);
      list.append(entry);
    }
    frame.append(list);
    this.arrows = null;
    if (this.data.arrows) {
      this.arrows = svgNode("svg", { class: "arrows", width: 54, role: "img", "aria-label": this.data.arrows_label });
      frame.classList.add("with-arrows");
      frame.append(this.arrows);
    }
    left.append(frame);
    const legend = node("p", "soft legend");
    if (this.data.levels) {
      const ramp = node("span", "ramp", undefined, { "aria-hidden": "true" });
      for (let k = 0; k <= this.data.levels; k += 1) {
        const step = node("i");
        step.style.setProperty("--share", k / this.data.levels);
        ramp.append(step);
      }
      legend.append(ramp);
    }
    legend.append(this.data.legend);
    left.append(legend);
    return left;
  }

  drawArrows() {
    if (!this.arrows) return;
    const rows = [...this.root.querySelectorAll(".frame li")];
    const top = rows[0]?.offsetTop ?? 0;
    const middle = (index) => rows[index].offsetTop - top + rows[index].offsetHeight / 2;
    const height = this.root.querySelector(".frame .chain").offsetHeight;
    this.arrows.setAttribute("height", height);
    this.arrows.replaceChildren();
    for (const [k, index] of this.data.arrows.entries()) {
      const from = middle(this.data.step), to = middle(index), bend = Math.min(50, 23 + 7.5 * k);
      const line = { d: `M2 ${from} C ${bend} ${from}, ${bend} ${to}, 8 ${to}`, fill: "none", stroke: "currentColor", "stroke-width": 2 };
      this.arrows.append(svgNode("path", line), svgNode("path", { d: `M2 ${to} l7 -4 v8 z`, fill: "currentColor" }));
    }
  }

  panel() {
    const { panel } = this.data;
    const right = node("div", "right");
    const heading = node("h2", "", panel.step + " ");
    heading.append(node("span", "", panel.verb));
    right.append(heading);
    right.append(node("span", "soft", "What the model was given"));
    const given = node("div", "given");
    for (const line of panel.given) {
      const entry = node("div", line.kind === "same" ? "old" : "changed");
      entry.append(node("span", "label", line.label), changedText(line.pieces, "text"));
      if (line.note) entry.append(" ", node("span", "soft", line.note));
      given.append(entry);
    }
    given.append(node("div", "goes-on", panel.goes_on));
    right.append(given, node("span", "soft", "Its answers"));
    const says = node("p", "says", undefined, { role: "status" });
    says.append(node("b", "", panel.claim), " ", node("span", "soft", panel.interval));
    right.append(says);
    if (panel.answers.length) right.append(this.answers(panel));
    for (const note of panel.notes) right.append(node("p", "soft", note));
    return right;
  }

  answers(panel) {
    const isLong = panel.answers.some((answer) => (answer.text + answer.mark).length > 9);
    const table = node("table", isLong ? "answers long" : "answers"), head = node("tr");
    head.append(node("th", "", "Answer", { scope: "col" }));
    for (const [title, total] of panel.columns) {
      const cell = node("th", "", title, { scope: "col" });
      cell.append(node("br"), node("small", "", total));
      head.append(cell);
    }
    table.append(node("thead"), node("tbody"));
    table.firstChild.append(head);
    for (const answer of panel.answers) {
      const row = node("tr"), name = node("th", "", answer.text + " ", { scope: "row" });
      if (answer.mark) name.append(node("small", "", answer.mark));
      row.append(name);
      for (const [k, count] of answer.counts.entries()) {
        const cell = node("td"), bar = node("span", "track", undefined, { "aria-hidden": "true" }), fill = node("i", answer.kind);
        fill.style.width = `${panel.totals[k] ? (100 * count) / panel.totals[k] : 0}%`;
        bar.append(fill);
        cell.append(bar, node("span", "count", count));
        row.append(cell);
      }
      table.lastChild.append(row);
    }
    return table;
  }

  later() {
    const box = node("div", "later");
    box.append(node("span", "soft", this.data.later.title));
    const table = node("table"), body = node("tbody");
    for (const line of this.data.later.rows) {
      const row = node("tr"), cell = node("td");
      cell.append(changedText(line.pieces, "text"));
      if (line.note) cell.append(" ", node("span", "soft", line.note));
      row.append(node("th", "", line.label, { scope: "row" }), cell, node("td", "count", line.count));
      body.append(row);
    }
    table.append(body);
    if (this.data.later.rows.length) box.append(table);
    for (const note of this.data.later.notes) box.append(node("p", "soft", note));
    return box;
  }

  keys() {
    const bar = node("div", "keys", undefined, { "aria-label": "Keys" });
    for (const [keys, title] of this.data.keys) {
      const entry = node("span");
      for (const name of keys) entry.append(node("kbd", "", name));
      entry.append(" " + title);
      bar.append(entry);
    }
    const help = node("p", "soft all-keys", this.data.help);
    help.hidden = true;
    const box = node("div");
    box.append(bar, help);
    return box;
  }
}

const READERS = new WeakMap();

export default function (component) {
  let reader = READERS.get(component.parentElement);
  if (!reader) {
    reader = new Reader(component.parentElement);
    READERS.set(component.parentElement, reader);
  }
  reader.update(component);
  return () => {
    reader.leave();
    READERS.delete(component.parentElement);
  };
}
