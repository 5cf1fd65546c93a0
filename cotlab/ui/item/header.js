// The head of the page Item (header.py): which item it is, links to its neighbours, the question as the title, and what is known of the
// answer. All texts are set with textContent. A plain click on a neighbour, or the keys K and J, send it as ``neighbour``; with a modifier
// its link opens as any link does.
const HEADS = new WeakMap();

class Head {
  constructor(parent) {
    this.root = parent.querySelector(".head");
    this.links = {};
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    this.links[event.key.toLowerCase()]?.click();
  }

  update({ data, setTriggerValue }) {
    const { root } = this;
    root.replaceChildren();
    root.classList.toggle("dark", isDark(root));
    this.links = {};
    const top = node("div", "top"), nav = node("nav", "", undefined, { "aria-label": "Items" });
    top.append(node("span", "place", data.place), nav);
    for (const { key, label, arrow, href } of data.neighbours) {
      const link = node(href ? "a" : "span", "neighbour", undefined, href ? { href, target: "_self" } : { "aria-disabled": "true" });
      const sign = node("span", "", arrow, { "aria-hidden": "true" });
      const keySign = node("kbd", "", key.toUpperCase());
      link.append(...(key === "k" ? [sign, label, keySign] : [label, sign, keySign]));
      if (href) {
        this.links[key] = link;
        link.onclick = (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
          event.preventDefault();
          setTriggerValue("neighbour", key);
        };
      }
      nav.append(link);
    }
    root.append(top, questionText("h1", data.heading_pieces), factList(data.facts));
  }
}

export default function (component) {
  let head = HEADS.get(component.parentElement);
  if (!head) {
    head = new Head(component.parentElement);
    HEADS.set(component.parentElement, head);
  }
  head.update(component);
  return () => {
    document.removeEventListener("keydown", head.onKey);
    HEADS.delete(component.parentElement);
  };
}
