// The items of two runs and the chains of one of them (items.py): chips, a search, a list of links, two chains side by side.
// All texts are set with textContent, never as HTML. A plain click on a link stays in this page: it sends the link's number; with a
// modifier it opens its address as any link does. J and K go to the next and the previous item of the list, and so do
// the arrows on an item of it.
const VIEWS = new WeakMap();

class PairItems {
  constructor(parent) {
    this.root = parent.querySelector(".pair-items");
    this.waitingKeys = [];
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  key(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const name = event.key.toLowerCase();
    if (!"jk".includes(name)) return;
    if (this.isBusy) this.waitingKeys.push(name); // pressed before the last item is there
    else this.step(name);
  }

  step(name) {
    const link = this.data.neighbours[name];
    if (link !== undefined) this.open(link);
  }

  // The address itself is sent, so that it means the same where the server has drawn the page again meanwhile.
  open(link) {
    this.isBusy = true;
    this.root.setAttribute("aria-busy", "true");
    clearTimeout(this.busyTimer); // a choice that changes nothing brings no new data
    this.busyTimer = setTimeout(() => this.rest(), 5000);
    this.setTrigger("choice", { address: this.data.hrefs[link].split("?")[1] });
  }

  rest() {
    this.isBusy = false;
    this.waitingKeys = [];
    this.root.setAttribute("aria-busy", "false");
  }

  link(name, text, number, attributes = {}) {
    const made = node("a", name, text, { href: this.data.hrefs[number], target: "_self", "data-link": number, ...attributes });
    made.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.open(number);
    };
    return made;
  }

  // Opens another page in this session, as the back button would: Streamlit listens to popstate.
  pageLink(text, href) {
    const made = node("a", "", text, { href, target: "_self" });
    made.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      history.pushState({}, "", href);
      window.dispatchEvent(new PopStateEvent("popstate"));
    };
    return made;
  }

  update({ data, setTriggerValue }) {
    const focused = this.root.getRootNode().activeElement;
    const place = focused?.dataset?.focus, at = place === "search" ? focused.selectionStart : 0;
    this.data = data;
    this.setTrigger = setTriggerValue;
    this.isBusy = false;
    clearTimeout(this.busyTimer);
    this.root.classList.toggle("dark", isDark(this.root));
    this.root.setAttribute("aria-busy", "false");
    const panes = node("div", "panes");
    panes.append(this.list(), this.pair());
    this.root.replaceChildren(this.tools(), panes);
    if (place === "row") this.root.querySelector(".items [aria-current]")?.focus({ preventScroll: true });
    else if (place) this.root.querySelector(`[data-focus="${place}"]`)?.focus({ preventScroll: true });
    if (place === "search") this.root.querySelector("input").setSelectionRange(at, at);
    if (this.waitingKeys.length) this.step(this.waitingKeys.shift());
  }

  tools() {
    const bar = node("div", "tools"), chips = node("div", "chips", undefined, { role: "group", "aria-label": "Show" });
    for (const chip of this.data.chips) {
      const label = `${chip.text} `;
      const entry = chip.link === null
        ? node("span", "chip empty", label, { "aria-disabled": "true" })
        : this.link("chip", label, chip.link, chip.selected ? { "aria-current": "true" } : {});
      entry.dataset.focus = chip.text;
      entry.append(node("b", "", chip.count));
      chips.append(entry);
    }
    const search = node("input", "", undefined, {
      type: "search", placeholder: "Search questions", "aria-label": "Search questions", "data-focus": "search", maxlength: 200,
    });
    search.value = this.data.search;
    const send = () => {
      if (search.value !== this.data.search) this.setTrigger("choice", { search: search.value });
    };
    search.onchange = send;
    search.oninput = () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(send, 350);
    };
    const sort = node("select", "", undefined, { "aria-label": "Sort", "data-focus": "sort" });
    for (const option of this.data.sorts) {
      const entry = node("option", "", option.label, { value: option.link });
      entry.selected = option.selected;
      sort.append(entry);
    }
    sort.onchange = () => this.open(Number(sort.value));
    bar.append(chips, search, sort);
    return bar;
  }

  list() {
    const box = node("div", "left"), list = node("ol", "items", undefined, { "aria-label": "Items of both runs" });
    if (this.data.delta_label) box.append(node("p", "soft", this.data.delta_label));
    for (const row of this.data.rows) {
      const entry = node("li"), link = this.link("entry", undefined, row.link, row.selected ? { "aria-current": "true" } : {});
      link.dataset.focus = "row";
      link.onkeydown = (event) => {
        const name = { ArrowUp: "k", ArrowDown: "j" }[event.key];
        if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault(); // else the page scrolls
        this.step(name);
      };
      const answers = node("span", "answers"), [first, second] = row.answers;
      answers.append(this.answer(first), " → ", this.answer(second));
      link.append(node("span", "n", row.number), node("span", "question", row.question), answers, node("span", "delta", row.delta));
      link.title = `${row.question} (${row.outcome})`;
      entry.append(link);
      list.append(entry);
    }
    const foot = node("p", "soft foot");
    foot.append(node("span", "", this.data.place));
    for (const [title, link] of Object.entries(this.data.pages)) foot.append(this.link("", title, link));
    foot.append(node("kbd", "", "K"), node("kbd", "", "J"), "previous, next");
    box.append(list, foot);
    for (const reason of this.data.reasons) box.append(node("p", "soft", reason));
    return box;
  }

  answer({ text, kind }) {
    const made = node("b", kind, text);
    made.append(node("span", "sr", { right: " right", wrong: " wrong" }[kind] ?? " not judged"));
    return made;
  }

  choices(list, title) {
    const box = node("p", "choices soft", `${title} `);
    for (const choice of list) box.append(this.link("choice", choice.text, choice.link, choice.selected ? { "aria-current": "true" } : {}));
    return box;
  }

  pair() {
    const box = node("div", "pair"), { pair } = this.data;
    if (this.data.note) box.append(node("p", "soft", this.data.note));
    if (!pair) return box;
    box.append(node("p", "soft place", `${pair.place} · ${pair.outcome}${pair.reason ? `: ${pair.reason}` : ""}`));
    box.append(questionText("h2", pair.question_pieces));
    if (pair.modes.length) box.append(this.choices(pair.modes, "The step"));
    if (pair.chains.length) box.append(this.choices(pair.chains, "Chains"));
    const table = node("div", "sides chain", undefined, { role: "table", tabindex: "0", "aria-label": "Both chains, step by step" });
    const head = node("div", "line", undefined, { role: "row" });
    for (const side of pair.sides) {
      const cell = node("div", "side top", undefined, { role: "columnheader" });
      cell.append(node("h3", "", side.name), factList(side.facts), this.pageLink("Open item", side.href));
      head.append(cell);
    }
    table.append(head);
    for (const line of pair.lines) {
      const entry = node("div", "line", undefined, { role: "row" });
      for (const [k, row] of line.entries()) {
        const cell = node("div", "side", undefined, { role: "cell", "data-run": pair.sides[k].name });
        cell.append(row ? chainRow(row, false, false) : node("p", "none", "no step here"));
        entry.append(cell);
      }
      table.append(entry);
    }
    box.append(table, node("p", "soft", pair.summary));
    if (pair.value) box.append(node("p", "soft", pair.value));
    return box;
  }
}

export default function (component) {
  let view = VIEWS.get(component.parentElement);
  if (!view) {
    view = new PairItems(component.parentElement);
    VIEWS.set(component.parentElement, view);
  }
  view.update(component);
  return () => {
    document.removeEventListener("keydown", view.onKey);
    VIEWS.delete(component.parentElement);
  };
}
