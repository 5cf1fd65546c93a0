// The labelling component of the page Label. It prefetches the next items of the queue, so that a key press shows the next
// one at once, and sends the rater's actions to the server. Actions that the server has not confirmed are sent again, also
// after a reload. All texts are set with textContent, never as HTML.

const GATHER_MS = 2000; // collect fast actions in one batch: each batch reruns the page around the component …
const QUIET_MS = 300; // … but send after this time without a key press
const RESEND_MS = 4000; // send again without a confirmation in this time
const RENEW_MS = 20000; // an active rater renews their items, which are reserved for two minutes
const WAIT_MS = 5000; // a rater without an item polls while others label the last ones
const LATE_MS = 3000; // a label that is unconfirmed for longer gets a warning

function el(tag, name, text, more = {}) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
  return made;
}

// The digit or letter printed on a key that types another character: digits that need Shift, or another alphabet.
function printedKey({ key, code, shiftKey }) {
  const digit = !shiftKey && /^Digit([0-9])$/.exec(code);
  const letter = key.length === 1 && key > "\x7f" && /^Key([A-Z])$/.exec(code);
  return (digit || letter || ["", ""])[1].toLowerCase();
}

class LabelWidget {
  constructor(root) {
    this.drafts = new Map(); // modes, answer and note of an item before its verdict, by label id
    this.ready = null; // label id of the item on the screen; null while the next one is rendered
    this.helping = false;
    this.sent = { upTo: 0, at: 0 };
    this.active = Date.now();
    this.root = el("div", "desk", "", { tabindex: "-1", role: "region", "aria-label": "Item to label" });
    root.appendChild(this.root);
    this.onKey = (event) => this.key(event);
    this.onActive = () => { this.active = Date.now(); };
    this.onLeave = (event) => { if (this.unconfirmed().length) event.preventDefault(); };
  }

  enter() {
    document.addEventListener("keydown", this.onKey);
    for (const name of ["pointermove", "scroll", "keydown"]) document.addEventListener(name, this.onActive, true);
    window.addEventListener("beforeunload", this.onLeave);
    this.timer = setInterval(() => this.tick(), 150);
    this.act("renew"); // the server sent only the first few items; fetch the others meanwhile
  }

  leave() {
    if (this.unconfirmed().length) this.post(); // the page is left: if this batch is lost, the next component of this window sends it
    document.removeEventListener("keydown", this.onKey);
    for (const name of ["pointermove", "scroll", "keydown"]) document.removeEventListener(name, this.onActive, true);
    window.removeEventListener("beforeunload", this.onLeave);
    clearInterval(this.timer);
  }

  // New data from the server: the next items, and how many actions it has confirmed.
  update({ data, setStateValue }) {
    this.setState = setStateValue;
    const storageKey = `cotlab-desk ${data.rater}`; // of all queues: unsent actions of the last queue are sent from this one
    if (this.storageKey !== storageKey) {
      this.storageKey = storageKey;
      this.outbox = this.load();
      this.renderedId = undefined;
    }
    this.data = data;
    const before = this.outbox.acts.length;
    if (data.ack && data.ack.client === this.outbox.client) {
      this.outbox.acts = this.outbox.acts.filter((act) => act.seq > data.ack.seq);
      this.outbox.seq = Math.max(this.outbox.seq, data.ack.seq);
    }
    if (this.outbox.acts.length !== before) this.save();
    this.send();
    this.render();
  }

  load() {
    try {
      const stored = JSON.parse(sessionStorage.getItem(this.storageKey));
      if (stored && stored.client && Array.isArray(stored.acts)) return stored;
    } catch { /* stored by another version: ignore it */ }
    return { client: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`, seq: 0, acts: [] };
  }

  save() {
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify(this.outbox));
    } catch { /* without storage a reload loses unconfirmed actions; the page shows how many */ }
  }

  act(kind, more = {}) {
    this.idle = kind === "idle";
    this.outbox.seq += 1;
    this.outbox.acts.push({ seq: this.outbox.seq, queue: this.data.queue, kind, at: Date.now(), ...more });
    this.save();
    this.send();
  }

  // Send the unconfirmed actions, unless a confirmation is pending or the last batch was sent just now.
  send() {
    const { acts: all } = this.outbox;
    if (!all.length) return;
    const since = Date.now() - this.sent.at;
    const quiet = Date.now() - all[all.length - 1].at >= QUIET_MS;
    if (since < (all.some((act) => act.seq <= this.sent.upTo) ? RESEND_MS : quiet ? 0 : GATHER_MS)) return;
    this.post();
  }

  post() {
    const acts = this.outbox.acts.slice(0, this.data.maxActions).map(({ at, ...act }) => act);
    this.sent = { upTo: acts[acts.length - 1].seq, at: Date.now() };
    this.setState("batch", { client: this.outbox.client, time: Date.now(), acts });
  }

  tick() {
    const now = Date.now();
    if (this.outbox.acts.length) this.send();
    else this.keep(now - this.sent.at, this.active > this.sent.at);
    this.status();
  }

  // Renew the items of an active rater. An idle rater releases all but the one on the screen, once, and gets more on return.
  keep(since, active) {
    if (this.data.waits) {
      if (since > WAIT_MS && document.visibilityState === "visible") this.act("renew");
    } else if (this.item() && active && (this.idle || since > RENEW_MS)) this.act("renew");
    else if (this.item() && !this.idle && since > RENEW_MS) this.act("idle");
  }

  // The current item: the first one without an action.
  item() {
    const done = new Set(this.outbox.acts.map((act) => act.id));
    return this.data.items.find((item) => !done.has(item.id));
  }

  // The rater's actions that the server has not confirmed.
  unconfirmed() {
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

  // The item on the screen, which a verdict applies to; undefined until the item is painted.
  current() {
    const item = this.item();
    return item && this.ready === item.id && !this.waiting() ? item : undefined;
  }

  give(verdict, flagged = false) {
    const item = this.current();
    if (!item || (!item.readable && !flagged)) return;
    const { modes, answer, note } = this.draft(item);
    const known = this.data.modes.map(([, name]) => name).filter((name) => modes.has(name));
    this.act("label", {
      id: item.id, run: item.run, item: item.item, verdict, answer, modes: known, note: note.trim(), flagged,
    });
    this.drafts.delete(item.id);
    this.render();
  }

  skip() {
    const item = this.current();
    if (!item) return;
    this.act(item.corrects ? "leave" : "skip", { id: item.id, run: item.run, item: item.item });
    this.render();
  }

  undo() {
    const of = this.last();
    if (!of || this.waiting()) return;
    this.act("undo", { of });
    this.render();
  }

  last() {
    const mine = this.outbox.acts.filter((act) => act.kind === "label" && act.queue === this.data.queue);
    return mine.length ? mine[mine.length - 1].id : this.data.last;
  }

  mode(name) {
    const item = this.current();
    if (!item) return;
    const { modes } = this.draft(item);
    if (!modes.delete(name)) modes.add(name);
    this.render();
  }

  answer(value) {
    const item = this.current();
    if (!item) return;
    this.draft(item).answer = value;
    this.render();
  }

  help() {
    this.helping = !this.helping;
    this.render();
  }

  key(event) {
    if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = event.composedPath()[0];
    if (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)) return;
    const button = this.keys.get(event.key.toLowerCase()) ?? this.keys.get(printedKey(event));
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  }

  button(key, words, act, more = {}) {
    const made = el("button", "desk-button", "", { type: "button", "aria-keyshortcuts": key, ...more });
    made.append(el("span", "", words), el("kbd", "", key.toUpperCase(), { "aria-hidden": "true" }));
    made.addEventListener("click", (event) => { if (event.detail < 2) act(); }); // a double click counts once
    this.keys.set(key.toLowerCase(), made);
    return made;
  }

  render() {
    const item = this.item();
    const now = item ? item.id : null;
    if (this.renderedId !== now) {
      this.renderedId = now;
      this.ready = null;
      this.build(item);
      // ready after the paint: an item that is not on the screen yet cannot be judged
      requestAnimationFrame(() => setTimeout(() => {
        if (this.renderedId !== now) return;
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
    if (item) bar.append(this.modesRow(), this.answerRow(item));
    this.helpBox = el("div", "desk-help");
    for (const [key, text] of this.data.help) this.helpBox.append(el(key ? "kbd" : "span", "", key), el("span", "", text));
    this.root.append(bar, this.helpBox);
    if (item) this.root.append(this.texts(item));
    else this.root.append(this.coming = el("p", "desk-caption", "The next items are loading."));
    const at = document.activeElement; // keep keyboard and screen reader here: the pressed button is gone
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

  answerRow(item) {
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
    const note = el("input", "", "", { type: "text", dir: "auto", maxlength: String(this.data.maxNoteLength), placeholder: "Stored with the label" });
    note.value = this.draft(item).note;
    note.addEventListener("input", () => { this.draft(item).note = note.value; });
    note.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") note.blur(); // so that the keys work again
    });
    label.append(el("span", "desk-caption", "Note"), note);
    row.append(group, label);
    return row;
  }

  texts(item) {
    const box = el("div", "desk-texts");
    for (const note of item.notes) box.append(el("p", "desk-warning", note));
    for (const [name, text] of item.rows) {
      const row = el("div", "desk-text", "", { role: "group", "aria-label": name });
      row.append(el("span", "desk-caption", name), el("div", "", text, { dir: "auto" })); // the text may be right-to-left
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
    const fresh = this.data.items.find(({ id }) => id === item.id);
    if (fresh && fresh.until) {
      const clock = new Date(fresh.until * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
      this.until.textContent = `Reserved for you until ${clock}, and longer while you read; a later label counts too.`;
    }
  }

  status() {
    if (!this.state) return;
    const actions = this.unconfirmed();
    const late = actions.length > 0 && Date.now() - actions[0].at > LATE_MS;
    let text = this.waiting() ? "Undoing …" : actions.length ? `Saving ${actions.length} …` : this.data.last ? "Saved" : "";
    if (late) text = `${actions.length} not saved yet: this page keeps trying. Leave it open.`;
    if (this.state.textContent !== text) this.state.textContent = text; // a screen reader reads it once, not at each tick
    this.state.classList.toggle("desk-late", late);
  }
}

const WIDGETS = new WeakMap();

export default function (component) {
  let widget = WIDGETS.get(component.parentElement);
  if (!widget) {
    widget = new LabelWidget(component.parentElement);
    WIDGETS.set(component.parentElement, widget);
    widget.update(component);
    widget.enter();
  } else widget.update(component);
  return () => {
    widget.leave();
    widget.root.remove();
    WIDGETS.delete(component.parentElement);
  };
}
