// The items of two runs and the chains of one of them (items.py): chips, a search, a list of links (item_list.js), two chains side by side.
// All texts are set with textContent, never as HTML.
class PairItems extends ItemList {
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

  draw() {
    const panes = node("div", "panes"), tools = this.tools();
    const sort = node("select", "", undefined, { "aria-label": "Sort", "data-focus": "sort" });
    for (const option of this.data.sorts) {
      const entry = node("option", "", option.label, { value: option.link });
      entry.selected = option.selected;
      sort.append(entry);
    }
    sort.onchange = () => this.open(Number(sort.value));
    tools.append(sort);
    panes.append(this.left(), this.pair());
    return [tools, panes];
  }

  left() {
    const box = node("div", "left");
    if (this.data.rows.length) {
      const heads = node("p", "soft heads", undefined, { "aria-hidden": "true" });
      heads.append(...this.data.heads.filter(Boolean).map((text) => node("span", "", text)));
      box.append(heads);
    }
    box.append(...this.list("Items of both runs"));
    for (const reason of this.data.reasons) box.append(node("p", "soft", reason));
    return box;
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
    box.append(node("p", "soft place", `${pair.place} · ${pair.outcome}`));
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

export default itemListComponent(PairItems, ".pair-items");
