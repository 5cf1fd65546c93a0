// A table whose cells may be links (link_table.py). All texts are set with textContent. A plain click on a link stays in this page: it
// sends the link's number as ``opened``; with a modifier, or from its menu, it opens its address as any link does.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".links");
  const table = node("table", "", undefined, { "aria-label": data.label });
  const head = node("tr");
  for (const [k, title] of data.columns.entries()) head.append(node("th", data.numeric[k] ? "number" : "", title, { scope: "col" }));
  const top = node("thead"), body = node("tbody");
  top.append(head);
  for (const cells of data.rows) {
    const row = node("tr");
    for (const [k, cell] of cells.entries()) {
      const box = node("td", data.numeric[k] ? "number" : "");
      if (cell.href) {
        const link = node("a", "", cell.text, { href: cell.href, target: "_self", "aria-label": cell.name });
        link.onclick = (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
          event.preventDefault();
          setTriggerValue("opened", cell.number);
        };
        box.append(link);
      } else {
        box.textContent = cell.text;
      }
      row.append(box);
    }
    body.append(row);
  }
  table.append(top, body);
  root.replaceChildren(table);
}
