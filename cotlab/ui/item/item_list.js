// A list of items that the pages Item and Compare share (item_list.py): chips, a search, links, neighbours by J and K.
// All texts are set with textContent, never as HTML. A plain click on a link stays in this page: it sends the link's address as the
// trigger ``choice``; with a modifier it opens its address as any link does. ``draw`` is the page's own part.
class ItemList {
  constructor(root) {
    this.root = root;
    this.waitingKeys = [];
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  leave() {
    document.removeEventListener("keydown", this.onKey);
    clearTimeout(this.waiting);
    clearTimeout(this.busyTimer);
  }

  key(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const name = event.key.toLowerCase();
    if (name !== "j" && name !== "k") return;
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

  update({ data, setTriggerValue }) {
    const focused = this.root.getRootNode().activeElement;
    const place = focused?.dataset?.focus, at = place === "search" ? focused.selectionStart : 0;
    const typed = place === "search" && focused.value !== this.data.search && focused.value !== data.search ? focused.value : null;
    this.data = data;
    this.setTrigger = setTriggerValue;
    this.isBusy = false;
    clearTimeout(this.busyTimer);
    this.root.classList.toggle("dark", isDark(this.root));
    this.root.setAttribute("aria-busy", "false");
    this.root.replaceChildren(...this.draw());
    if (place === "row") this.root.querySelector(".items [aria-current]")?.focus({ preventScroll: true });
    else if (place) this.root.querySelector(`[data-focus="${place}"]`)?.focus({ preventScroll: true });
    const search = this.root.querySelector("input");
    if (typed !== null) search.value = typed; // typed on while the server answered
    if (place === "search") search.setSelectionRange(at, at);
    if (this.waitingKeys.length) this.step(this.waitingKeys.shift());
  }

  tools() {
    const bar = node("div", "tools"), chips = node("div", "chips", undefined, { role: "group", "aria-label": "Show" });
    for (const chip of this.data.chips) {
      const label = `${chip.text} `;
      const entry = chip.link === null
        ? node("span", "chip empty", label, { "aria-disabled": "true" })
        : this.link("chip", label, chip.link, chip.selected ? { "aria-current": "true" } : {});
      if (chip.help) entry.title = chip.help;
      entry.dataset.focus = chip.text;
      entry.append(node("b", "", chip.count.toLocaleString("en")));
      chips.append(entry);
    }
    const search = node("input", "", undefined, {
      type: "search", placeholder: this.data.search_label, "aria-label": this.data.search_label, "data-focus": "search", maxlength: 200,
    });
    search.value = this.data.search;
    const send = () => {
      clearTimeout(this.waiting);
      if (search.value !== this.data.search) this.setTrigger("choice", { search: search.value });
    };
    search.onchange = send;
    search.oninput = () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(send, 350);
    };
    bar.append(chips, search);
    return bar;
  }

  // The items of the list, and below them which part of it that is; the arrows on an item go to its neighbours.
  list(title) {
    const list = node("ol", "items", undefined, { "aria-label": title });
    for (const row of this.data.rows) {
      const entry = node("li"), link = this.link("entry", undefined, row.link, row.selected ? { "aria-current": "true" } : {});
      link.dataset.focus = "row";
      link.onkeydown = (event) => {
        const name = { ArrowUp: "k", ArrowDown: "j" }[event.key];
        if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault(); // else the page scrolls
        event.stopPropagation();
        this.step(name);
      };
      const answers = node("span", "answers");
      // an arrow where two runs differ; two equal answers are no step from one to the other
      const between = new Set(row.answers.map((answer) => answer.text)).size > 1 || row.answers.some((answer) => answer.text.endsWith("…")) ? " → " : " · ";
      row.answers.forEach((answer, k) => answers.append(k ? between : "", this.answer(answer)));
      link.append(node("span", "n", row.number), node("span", "question", row.question), answers, node("span", "delta", row.delta));
      link.title = row.outcome ? `${row.question} (${row.outcome})` : row.question;
      entry.append(link);
      list.append(entry);
    }
    const foot = node("p", "soft foot");
    foot.append(node("span", "", this.data.part));
    for (const [title, link] of Object.entries(this.data.pages)) foot.append(this.link("", title, link));
    foot.append(node("kbd", "", "K"), node("kbd", "", "J"), "previous, next");
    return [list, foot];
  }

  answer({ text, kind }) {
    const made = node("b", kind, text);
    made.append(node("span", "sr", { right: " right", wrong: " wrong" }[kind] ?? " not judged"));
    return made;
  }
}

// The component's entry: one view for each place in the page.
function itemListComponent(View, selector) {
  const views = new WeakMap();
  return (component) => {
    let view = views.get(component.parentElement);
    if (!view) {
      view = new View(component.parentElement.querySelector(selector));
      views.set(component.parentElement, view);
    }
    view.update(component);
    return () => {
      view.leave();
      views.delete(component.parentElement);
    };
  };
}
