// A list of rows (``render_rows`` and ``select_row`` in chain.py). The index of the chosen row is the component's state ``selected``.
export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".chain");
  root.replaceChildren();
  root.classList.toggle("dark", isDark(root));
  for (const block of data.blocks) {
    const row = chainRow(block, data.clickable, block.index === data.selected);
    if (data.clickable) row.onclick = () => setStateValue("selected", block.index);
    root.append(row);
  }
}
