// A list of rows (``render_rows`` in chain.py), of which one may be marked.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".chain");
  root.classList.toggle("dark", isDark(root));
  root.replaceChildren(...data.blocks.map((block) => chainRow(block, false, block.index === data.selected)));
}
