// What was said at desks of this window (label_desk.js) and not confirmed, while no desk of that rater is open to tell it.

const PLACE = "cotlab-desk ";

function waiting(rater) {
  const found = [];
  for (const key of Object.keys(sessionStorage).filter((one) => one.startsWith(PLACE))) {
    try {
      const n = JSON.parse(sessionStorage.getItem(key)).acts.filter((act) => !["renew", "idle"].includes(act.kind)).length;
      const name = key.slice(PLACE.length);
      if (n && name !== rater) found.push([name, n]);
    } catch { /* what another version kept is of no use */ }
  }
  return found;
}

export default function ({ parentElement, data }) {
  parentElement.querySelector(".desk-waiting")?.remove(); // beside it stands the style
  const box = document.createElement("div");
  box.className = "desk-waiting";
  box.setAttribute("role", "status");
  for (const [name, n] of waiting(data.rater)) {
    const line = document.createElement("p");
    line.className = "desk-warning";
    line.dir = "auto";
    line.textContent = `${n} ${n > 1 ? "labels" : "label"} or skips of ${name} in this window may not be saved: label here as ${name}, and what is missing is saved.`;
    box.append(line);
  }
  parentElement.append(box);
  const onLeave = (event) => { if (box.isConnected && box.childElementCount) event.preventDefault(); };
  window.addEventListener("beforeunload", onLeave);
  return () => window.removeEventListener("beforeunload", onLeave);
}
