// Texts that link to pages (linked.py). All texts are set with textContent, never as HTML; a link is the index of its address.
// A plain click adds the address to the history and opens its page in this session, as the back button would: Streamlit listens
// to popstate. Other clicks (a new tab, say) follow the address.
const SVG = "http://www.w3.org/2000/svg";
const WORDS = { yes: "yes", part: "in part", no: "no", unknown: "not known", neutral: "no evidence for the chain" };
const SHAPES = {
  yes: [["circle", { cx: 12, cy: 12, r: 9.5 }], ["path", { d: "M7.6 12.4l3 3 5.8-6" }]],
  part: [["circle", { cx: 12, cy: 12, r: 9.5 }], ["path", { d: "M12 2.5a9.5 9.5 0 0 1 0 19z", class: "full" }]],
  no: [["path", { d: "M12 3.2 22.2 20.8H1.8z" }], ["path", { d: "M12 9.6v5" }], ["circle", { cx: 12, cy: 17.6, r: 0.7, class: "full" }]],
  neutral: [["circle", { cx: 12, cy: 12, r: 9.5 }], ["path", { d: "M7.5 12h9" }]],
  unknown: [["circle", { cx: 12, cy: 12, r: 9.5 }], ["path", { d: "M9.2 9.4a2.9 2.9 0 1 1 4.3 2.5c-1 .6-1.5 1.1-1.5 2.2" }],
    ["circle", { cx: 12, cy: 17, r: 0.7, class: "full" }]],
};

const shown = new WeakMap(); // the chosen order of each table's rows, which stays when it is drawn anew

// "100 [94.0, 100]" by its number, "12 of 60" by the first, other texts as text; n/a last.
function sortKey(cell) {
  const number = Number.parseFloat(cell.text.replaceAll(",", "").replace("−", "-").replace(/^\$/, ""));
  return Number.isNaN(number) ? cell.text.toLowerCase() : number;
}

function inOrder(rows, { column, sign }) {
  const isMissing = (row) => row[column].text === "n/a" || row[column].text === "";
  return [...rows].sort(([, first], [, second]) => {
    if (isMissing(first) || isMissing(second)) return isMissing(first) - isMissing(second);
    const [a, b] = [sortKey(first[column]), sortKey(second[column])];
    if (typeof a !== typeof b) return sign * (typeof a === "number" ? -1 : 1);
    return sign * (a < b ? -1 : a > b ? 1 : 0);
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".linked");

  const element = (tag, className, ...children) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  };
  const link = (text, index, className = "", label = "") => {
    if (index === null || index === undefined) return element("span", className, text);
    const node = element("a", className, text);
    if (label) node.setAttribute("aria-label", label);
    node.href = data.addresses[index];
    node.onclick = (event) => {
      if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      history.pushState({}, "", data.addresses[index]);
      window.dispatchEvent(new PopStateEvent("popstate"));
    };
    return node;
  };
  const mark = (name, label = WORDS[name]) => {
    const icon = document.createElementNS(SVG, "svg");
    icon.setAttribute("viewBox", "0 0 24 24");
    icon.setAttribute("class", `mark ${name}`);
    if (label) {
      icon.setAttribute("role", "img");
      icon.setAttribute("aria-label", label);
    } else icon.setAttribute("aria-hidden", "true"); // the text beside it says the same
    for (const [tag, attributes] of SHAPES[name]) {
      const shape = document.createElementNS(SVG, tag);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      icon.append(shape);
    }
    return icon;
  };
  const passages = (list) => list.map((passage) => {
    const node = link(passage.text, passage.link);
    if (passage.is_marked) return element("mark", "", node);
    return passage.is_strong ? element("b", "", node) : node;
  });

  const VIEWS = {
    short: () => element("p", `short ${data.tone ?? data.mark ?? ""}`, data.mark ? mark(data.mark) : null, data.text),
    verdict: () => element("section", `verdict ${data.tone ?? data.mark}`, mark(data.mark),
      element("div", "",
        element("h2", "", data.headline),
        data.sentences.length ? element("p", "evidence", ...data.sentences.flatMap((sentence) => [...passages(sentence), " "])) : null,
        ...data.reasons.map((reason) => element("p", "evidence", reason)),
        data.limits ? element("p", "limits", data.limits) : null,
        data.chip ? element("p", "limits", "Tested: ", link(data.chip, data.chip_link)) : null)),
    lamps: () => element("div", "lamps", ...data.lamps.map((lamp) => element("section", `lamp ${lamp.mark}`,
      element("div", "head", element("h3", "", lamp.question), element("p", "answer", mark(lamp.mark), element("span", "", lamp.answer))),
      element("div", "body",
        lamp.share ? element("p", "share", element("span", "big", link(lamp.share, lamp.link)), " ", element("span", "small", lamp.interval)) : null,
        lamp.what ? element("p", "what", lamp.what) : null,
        lamp.ends ? element("p", "small last", lamp.ends) : null,
        lamp.button ? element("p", "action", link(lamp.button.text, lamp.button.link, "button"), element("span", "small", lamp.button.note)) : null),
      lamp.validation ? element("p", "chip", lamp.validation_mark ? mark(lamp.validation_mark) : null, "Tested: ", link(lamp.validation, lamp.validation_link)) : null))),
    table: () => {
      const classes = (column) => [column.is_number ? "number" : "", column.is_optional ? "optional" : "", column.is_nowrap ? "nowrap" : "", column.is_wide ? "wide" : ""].join(" ").trim();
      const order = shown.get(root);
      const head = element("tr", "", data.ticks ? element("th", "", element("span", "spoken", "Compare")) : null, ...data.columns.map((column, index) => {
        const title = [column.title, column.unit ? element("span", "unit", column.unit) : null];
        const cell = element("th", classes(column));
        cell.scope = "col";
        if (column.help) cell.title = column.help;
        if (data.is_sortable) {
          const isSorted = order?.column === index;
          const button = element("button", "", ...title);
          button.type = "button";
          button.onclick = () => {
            shown.set(root, { column: index, sign: isSorted ? -order.sign : 1 });
            root.replaceChildren(VIEWS.table());
            root.querySelectorAll("th button")[index].focus();
          };
          if (isSorted) cell.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
          cell.append(button);
        } else cell.append(...title.filter(Boolean));
        return cell;
      }));
      const ticked = new Set(data.ticked ?? []);
      const tick = (index) => {
        const box = document.createElement("input");
        box.type = "checkbox";
        box.checked = ticked.has(data.ticks[index].id);
        box.setAttribute("aria-label", data.ticks[index].label);
        box.onchange = () => {
          if (box.checked) ticked.add(data.ticks[index].id);
          else ticked.delete(data.ticks[index].id);
          setTriggerValue("ticked", [...ticked]);
        };
        return element("td", "tick", box);
      };
      const numbered = [...data.rows.entries()];
      const rows = (order ? inOrder(numbered, order) : numbered).map(([number, row]) => element("tr", "",
        data.ticks ? tick(number) : null,
        ...row.map((cell, index) => element("td", [classes(data.columns[index]), cell.tone ?? ""].join(" ").trim(),
          cell.mark ? mark(cell.mark, cell.mark_label) : null, link(cell.text, cell.link, "", cell.label), ...passages(cell.passages ?? []), cell.small ? element("small", cell.small.startsWith("[") ? "bounds" : "", ` ${cell.small}`) : null, cell.below ? element("small", "below", ` ${cell.below}`) : null))));
      const table = element("table", "", element("thead", "", head), element("tbody", "", ...rows));
      table.setAttribute("aria-label", data.title);
      return element("div", ["scroll", data.is_tall ? "tall" : "", data.is_dense ? "dense" : ""].join(" "), table);
    },
  };
  root.replaceChildren(VIEWS[data.view]());
}
