// The desk of the page Label. It holds the next items of the queue, so that a key shows the next one at once, and tells the
// server what was done; what the server has not confirmed is told again, also after a reload. Every text is set as text.

const GATHER_MS = 2000; // what comes fast is told together: each telling draws the page around the desk again …
const QUIET_MS = 300; // … but nothing waits longer than this for another key
const RESEND_MS = 4000; // without an answer in this time, tell again
const RENEW_MS = 20000; // whoever reads keeps their items, which are reserved for two minutes
const WAIT_MS = 5000; // whoever has no item, while others label the last ones, asks again
const LATE_MS = 3000; // so long a label may be unconfirmed before the page says so

function el(tag, name, text, more = {}) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

// The digit or letter on a key whose layout writes another sign with it: digits with Shift only, or another alphabet.
function printed({ key, code, shiftKey }) {
  const digit = !shiftKey && /^Digit([0-9])$/.exec(code);
  const letter = key.length === 1 && key > "\x7f" && /^Key([A-Z])$/.exec(code);
  return (digit || letter || ["", ""])[1].toLowerCase();
}

class Desk {
  constructor(root) {
    this.drafts = new Map(); // what was noted of an item before its verdict, by the label's id
    this.ready = null; // the label's id of the item that is on the screen; null while the next one is drawn
    this.helping = false;
    this.sent = { upTo: 0, at: 0 };
    this.active = Date.now();
    this.root = el("div", "desk", "", { tabindex: "-1", role: "region", "aria-label": "Item to label" });
    root.appendChild(this.root);
    this.onKey = (event) => this.key(event);
    this.onActive = () => { this.active = Date.now(); };
    this.onLeave = (event) => { if (this.told().length) event.preventDefault(); };
  }

  enter() {
    document.addEventListener("keydown", this.onKey);
    for (const name of ["pointermove", "scroll", "keydown"]) document.addEventListener(name, this.onActive, true);
    window.addEventListener("beforeunload", this.onLeave);
    this.timer = setInterval(() => this.tick(), 150);
    this.act("renew"); // the server gave the first few items; the others come while those are read
  }

  leave() {
    if (this.told().length) this.post(); // the page is left: if this does not arrive, the next desk of this window tells it
    document.removeEventListener("keydown", this.onKey);
    for (const name of ["pointermove", "scroll", "keydown"]) document.removeEventListener(name, this.onActive, true);
    window.removeEventListener("beforeunload", this.onLeave);
    clearInterval(this.timer);
  }

  // The server's word: which items come next, and how much of what was told it has done.
  update({ data, setStateValue }) {
    this.tell = setStateValue;
    const place = `cotlab-desk ${data.rater}`; // of all queues: what was not told of the last one is told from this one
    if (this.place !== place) {
      this.place = place;
      this.outbox = this.load();
      this.drawn = undefined;
    }
    this.data = data;
    const before = this.outbox.acts.length;
    if (data.ack && data.ack.client === this.outbox.client) {
      this.outbox.acts = this.outbox.acts.filter((act) => act.seq > data.ack.seq);
      this.outbox.seq = Math.max(this.outbox.seq, data.ack.seq);
    }
    if (this.outbox.acts.length !== before) this.save();
    this.send();
    this.draw();
  }

  load() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.place));
      if (kept && kept.client && Array.isArray(kept.acts)) return kept;
    } catch { /* what another version kept is of no use */ }
    return { client: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`, seq: 0, acts: [] };
  }

  save() {
    try {
      sessionStorage.setItem(this.place, JSON.stringify(this.outbox));
    } catch { /* without storage a reload loses what is not confirmed; the page says how much that is */ }
  }

  act(kind, more = {}) {
    this.idle = kind === "idle";
    this.outbox.seq += 1;
    this.outbox.acts.push({ seq: this.outbox.seq, queue: this.data.queue, kind, at: Date.now(), ...more });
    this.save();
    this.send();
  }

  // Tell what is not confirmed, unless an answer is waited for, or the last time was a moment ago.
  send() {
    const { acts: all } = this.outbox;
    if (!all.length) return;
    const since = Date.now() - this.sent.at;
    const quiet = Date.now() - all[all.length - 1].at >= QUIET_MS;
    if (since < (all.some((act) => act.seq <= this.sent.upTo) ? RESEND_MS : quiet ? 0 : GATHER_MS)) return;
    this.post();
  }

  post() {
    const acts = this.outbox.acts.slice(0, this.data.most).map(({ at, ...act }) => act);
    this.sent = { upTo: acts[acts.length - 1].seq, at: Date.now() };
    this.tell("told", { client: this.outbox.client, time: Date.now(), acts });
  }

  tick() {
    const now = Date.now();
    if (this.outbox.acts.length) this.send();
    else this.keep(now - this.sent.at, this.active > this.sent.at);
    this.status();
  }

  // Keep the items of who reads. Who does nothing gives back all but the one on the screen, once, and gets more on coming back.
  keep(since, active) {
    if (this.data.waits) {
      if (since > WAIT_MS && document.visibilityState === "visible") this.act("renew");
    } else if (this.item() && active && (this.idle || since > RENEW_MS)) this.act("renew");
    else if (this.item() && !this.idle && since > RENEW_MS) this.act("idle");
  }

  // The item that is asked about: the first of which nothing was told yet.
  item() {
    const done = new Set(this.outbox.acts.map((act) => act.id));
    return this.data.items.find((item) => !done.has(item.id));
  }

  // What the rater did that the server has not confirmed.
  told() {
    return this.outbox.acts.filter((act) => !["renew", "idle"].includes(act.kind));
  }

  waiting() {
    return this.outbox.acts.some((act) => act.kind === "undo");
  }

  draft(item) {
    if (!this.drafts.has(item.id)) {
      this.drafts.set(item.id, { modes: new Set(item.modes), answer: item.answer, note: item.note });
    }
    return this.drafts.get(item.id);
  }

  // A verdict is of the item that is on the screen, and of none while the next one is not painted yet.
  shown() {
    const item = this.item();
    return item && this.ready === item.id && !this.waiting() ? item : undefined;
  }

  give(verdict, flagged = false) {
    const item = this.shown();
    if (!item || (!item.readable && !flagged)) return;
    const { modes, answer, note } = this.draft(item);
    const known = this.data.modes.map(([, name]) => name).filter((name) => modes.has(name));
    this.act("label", {
      id: item.id, run: item.run, item: item.item, verdict, answer, modes: known, note: note.trim(), flagged,
    });
    this.drafts.delete(item.id);
    this.draw();
  }

  skip() {
    const item = this.shown();
    if (!item) return;
    this.act(item.corrects ? "leave" : "skip", { id: item.id, run: item.run, item: item.item });
    this.draw();
  }

  undo() {
    const of = this.last();
    if (!of || this.waiting()) return;
    this.act("undo", { of });
    this.draw();
  }

  last() {
    const mine = this.outbox.acts.filter((act) => act.kind === "label" && act.queue === this.data.queue);
    return mine.length ? mine[mine.length - 1].id : this.data.last;
  }

  mode(name) {
    const item = this.shown();
    if (!item) return;
    const { modes } = this.draft(item);
    if (!modes.delete(name)) modes.add(name);
    this.draw();
  }

  answer(value) {
    const item = this.shown();
    if (!item) return;
    this.draft(item).answer = value;
    this.draw();
  }

  help() {
    this.helping = !this.helping;
    this.draw();
  }

  key(event) {
    if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.composedPath()[0];
    if (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)) return;
    const button = this.keys.get(event.key.toLowerCase()) ?? this.keys.get(printed(event));
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }

  button(key, words, act, more = {}) {
    const made = el("button", "desk-button", "", { type: "button", "aria-keyshortcuts": key, ...more });
    made.append(el("span", "", words), el("kbd", "", key.toUpperCase(), { "aria-hidden": "true" }));
    made.addEventListener("click", (event) => { if (event.detail < 2) act(); }); // a double click is of one item
    this.keys.set(key.toLowerCase(), made);
    return made;
  }

  draw() {
    const item = this.item();
    const now = item ? item.id : null;
    if (this.drawn !== now) {
      this.drawn = now;
      this.ready = null;
      this.build(item);
      // after the paint: what is not on the screen yet cannot be judged
      requestAnimationFrame(() => setTimeout(() => {
        if (this.drawn !== now) return;
        this.ready = now;
        this.root.dataset.ready = now || "";
      }));
    }
    this.refresh(item);
    this.status();
  }

  build(item) {
    this.keys = new Map();
    this.root.replaceChildren();
    delete this.root.dataset.ready;
    const bar = el("div", "desk-bar");
    const first = el("div", "desk-row");
    this.verdicts = [];
    if (item) {
      for (const [key, verdict, words] of this.data.verdicts) {
        const made = this.button(key, words, () => this.give(verdict), { "data-verdict": verdict });
        made.disabled = !item.readable;
        first.append(made);
      }
      first.append(this.button("S", item.corrects ? "Leave it as it was" : "Skip", () => this.skip(), { title: this.data.titles.skip }));
      if (!item.corrects) {
        first.append(this.button("F", "Flag", () => this.give("unsure", true), { title: this.data.titles.flag }));
      }
    }
    this.undoButton = this.button("Z", "Undo", () => this.undo(), { title: this.data.titles.undo });
    this.state = el("span", "desk-state", "", { role: "status" });
    first.append(this.undoButton, this.button("H", "Help", () => this.help()), this.state);
    bar.append(first);
    this.modeButtons = new Map();
    this.answers = [];
    if (item) bar.append(this.modesRow(), this.saidRow(item));
    this.helpBox = el("div", "desk-help");
    for (const [key, text] of this.data.help) this.helpBox.append(el(key ? "kbd" : "span", "", key), el("span", "", text));
    this.root.append(bar, this.helpBox);
    if (item) this.root.append(this.texts(item));
    else this.root.append(this.coming = el("p", "desk-caption", "The next items are on their way."));
    const at = document.activeElement; // keys and readers stay at the desk, whose pressed button is gone
    if (!at || at === document.body || at.contains(this.root)) this.root.focus({ preventScroll: true });
  }

  modesRow() {
    const row = el("div", "desk-row", "", { role: "group", "aria-label": "Failure modes" });
    for (const [key, name, words, title] of this.data.modes) {
      const made = this.button(key, words, () => this.mode(name), { title, "aria-pressed": "false" });
      made.classList.add("desk-mode");
      this.modeButtons.set(name, made);
      row.append(made);
    }
    return row;
  }

  saidRow(item) {
    const row = el("div", "desk-row desk-said");
    const group = el("div", "desk-answers", "", { role: "radiogroup", "aria-label": "Is the answer right?" });
    const known = item.known ? " (by the ground truth)" : "";
    group.append(el("span", "desk-caption", `Is the answer right?${known}`));
    for (const [words, value] of this.data.answers) {
      const made = el("button", "desk-button desk-answer", words, { type: "button", role: "radio" });
      made.addEventListener("click", () => this.answer(value));
      this.answers.push([made, value]);
      group.append(made);
    }
    const label = el("label", "desk-note");
    const note = el("input", "", "", { type: "text", dir: "auto", maxlength: String(this.data.longest), placeholder: "Kept with the verdict" });
    note.value = this.draft(item).note;
    note.addEventListener("input", () => { this.draft(item).note = note.value; });
    note.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") note.blur(); // and the keys work again
    });
    label.append(el("span", "desk-caption", "Note"), note);
    row.append(group, label);
    return row;
  }

  texts(item) {
    const box = el("div", "desk-texts");
    for (const said of item.notes) box.append(el("p", "desk-warning", said));
    for (const [name, text] of item.rows) {
      const row = el("div", "desk-text", "", { role: "group", "aria-label": name });
      row.append(el("span", "desk-caption", name), el("div", "", text, { dir: "auto" })); // it may be written from the right
      box.append(row);
    }
    box.append(el("p", "desk-caption", item.whose));
    this.until = el("p", "desk-caption");
    box.append(this.until);
    return box;
  }

  refresh(item) {
    this.undoButton.disabled = !this.last() || this.waiting();
    this.helpBox.hidden = !this.helping;
    this.root.classList.toggle("desk-waits", this.waiting());
    if (!item) this.coming.hidden = !this.data.items.length;
    if (!item) return;
    const { modes, answer } = this.draft(item);
    for (const [name, made] of this.modeButtons) made.setAttribute("aria-pressed", String(modes.has(name)));
    for (const [made, value] of this.answers) made.setAttribute("aria-checked", String(value === answer));
    const fresh = this.data.items.find((one) => one.id === item.id);
    if (fresh && fresh.until) {
      const clock = new Date(fresh.until * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      this.until.textContent = `Reserved for you until ${clock}, and longer while you read; a label given later counts too.`;
    }
  }

  status() {
    if (!this.state) return;
    const told = this.told();
    const late = told.length > 0 && Date.now() - told[0].at > LATE_MS;
    let words = this.waiting() ? "Taking back …" : told.length ? `Saving ${told.length} …` : this.data.last ? "Saved" : "";
    if (late) words = `${told.length} not saved yet: this page keeps trying. Leave it open.`;
    if (this.state.textContent !== words) this.state.textContent = words; // said aloud once, not at each look
    this.state.classList.toggle("desk-late", late);
  }
}

const DESKS = new WeakMap();

export default function (component) {
  let desk = DESKS.get(component.parentElement);
  if (!desk) {
    desk = new Desk(component.parentElement);
    DESKS.set(component.parentElement, desk);
    desk.update(component);
    desk.enter();
  } else desk.update(component);
  return () => {
    desk.leave();
    desk.root.remove();
    DESKS.delete(component.parentElement);
  };
}
