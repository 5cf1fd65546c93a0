// Rows of text with a label, a colour and a score (``Block`` in chain.py). All texts are set with textContent, never as HTML.
// A clickable row is a button; the index of the chosen one is the component's state ``selected``.
export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".chain");
  root.replaceChildren();
  for (const block of data.blocks) {
    const row = document.createElement(data.clickable ? "button" : "div");
    row.className = "row" + (block.index === data.selected ? " selected" : "");
    if (data.clickable) {
      row.type = "button";
      row.setAttribute("aria-pressed", String(block.index === data.selected));
      row.onclick = () => setStateValue("selected", block.index);
    }
    const bar = document.createElement("span");
    bar.className = "bar";
    if (block.shade) {
      bar.style.background = block.shade;
      row.style.setProperty("--tint", block.shade);
    }
    const label = document.createElement("span");
    label.className = "label";
    label.textContent = block.label;
    const text = document.createElement("span");
    text.className = "text";
    if (block.pieces?.length) {
      for (const piece of block.pieces) {
        const part = document.createElement(piece.shade ? "mark" : "span");
        part.textContent = piece.text;
        if (piece.shade) part.style.setProperty("--mark", piece.shade);
        if (piece.hint) part.title = piece.hint;
        text.append(part);
      }
    } else {
      text.textContent = block.text;
    }
    const score = document.createElement("span");
    score.className = "score";
    score.textContent = block.score ?? "";
    if (block.hint) row.title = block.hint;
    row.append(bar, label, text, score);
    root.append(row);
  }
}
