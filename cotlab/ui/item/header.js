// The head of an item (header.py): which item this is, links to its neighbours in the list (item_list.js), the question as the
// title, and what is known of the answer. All texts are set with textContent.
const NEIGHBOURS = [["k", "Previous", "←"], ["j", "Next", "→"]];

class Head extends ItemList {
  draw() {
    const { data } = this;
    const top = node("div", "top"), nav = node("nav", "", undefined, { "aria-label": "Items" });
    top.append(node("span", "place", data.place), nav);
    for (const [key, label, arrow] of NEIGHBOURS) {
      const link = data.neighbours[key];
      const entry = link === undefined ? node("span", "neighbour", undefined, { "aria-disabled": "true" }) : this.link("neighbour", undefined, link);
      const sign = node("span", "", arrow, { "aria-hidden": "true" }), keySign = node("kbd", "", key.toUpperCase());
      entry.dataset.focus = label;
      entry.append(...(key === "k" ? [sign, label, keySign] : [label, sign, keySign]));
      nav.append(entry);
    }
    return [top, questionText("h2", data.heading_pieces), factList(data.facts)];
  }
}

export default itemListComponent(Head, ".head");
