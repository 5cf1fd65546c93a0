// A list of rows (``render_rows`` and ``render_row_choice`` in chain.py). A click sends the index of its row; the page says which one is selected.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".chain");
  const focusedIndex = root.getRootNode().activeElement?.closest?.(".row")?.dataset.index; // drawn anew, a row keeps the focus
  root.replaceChildren();
  root.classList.toggle("dark", isDark(root));
  for (const block of data.blocks) {
    const row = chainRow(block, data.clickable, block.index === data.selected);
    if (data.clickable) row.onclick = () => setTriggerValue("chosen", block.index);
    root.append(row);
    if (data.clickable && String(block.index) === focusedIndex) row.focus();
  }
}
