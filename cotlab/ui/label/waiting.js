// A warning about unconfirmed actions of other raters in this window (stored by widget.js), which nobody sends meanwhile; it keeps the rater's name too.

const KEY_PREFIX = "cotlab-desk ";

function waiting(rater) {
  const pending = [];
  for (const key of Object.keys(sessionStorage).filter((key) => key.startsWith(KEY_PREFIX))) {
    try {
      const n = JSON.parse(sessionStorage.getItem(key)).acts.filter((act) => !["renew", "idle"].includes(act.kind)).length;
      const name = key.slice(KEY_PREFIX.length);
      if (n && name !== rater) pending.push([name, n]);
    } catch { /* stored by another version: ignore it */ }
  }
  return pending;
}

// The browser keeps the name that a rater without a login typed, for the next visit; an empty one is forgotten.
function keepName({ cookie, name }) {
  const age = name ? 180 * 24 * 3600 : 0;
  document.cookie = `${cookie}=${encodeURIComponent(name)}; path=/; max-age=${age}; SameSite=Strict`;
}

export default function ({ parentElement, data }) {
  keepName(data);
  parentElement.querySelector(".desk-waiting")?.remove(); // the style element stays
  const box = document.createElement("div");
  box.className = "desk-waiting";
  box.setAttribute("role", "status");
  for (const [name, n] of waiting(data.rater)) {
    const line = document.createElement("p");
    line.className = "desk-warning";
    line.dir = "auto";
    line.textContent = `${n} ${n > 1 ? "labels" : "label"} or skips of ${name} in this window may not be saved: label here as ${name}, and they are saved.`;
    box.append(line);
  }
  parentElement.append(box);
  const onLeave = (event) => { if (box.isConnected && box.childElementCount) event.preventDefault(); };
  window.addEventListener("beforeunload", onLeave);
  return () => window.removeEventListener("beforeunload", onLeave);
}
