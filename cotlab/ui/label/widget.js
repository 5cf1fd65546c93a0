// The labelling component of the page Label. It prefetches the next items of the queue, so that a key press shows the next
// one at once, and sends the rater's actions to the server. Actions that the server has not confirmed are sent again, also
// after a reload. All texts are set with textContent, never as HTML. Its parts are in parts.js.

const GATHER_MS = 2000; // collect fast actions in one batch: each batch reruns the page around the component …
const QUIET_MS = 300; // … but send after this time without a key press
const RESEND_MS = 4000; // send again without a confirmation in this time
const RENEW_MS = 20000; // an active rater renews their items, which are reserved for two minutes
const WAIT_MS = 5000; // a rater without an item polls while others label the last ones
const REVEAL_MS = 700; // labels of raters that have just come up cannot be settled yet
const LATE_MS = 3000; // a label that is unconfirmed for longer gets a warning

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
    navigator.keyboard?.getLayoutMap?.().then((layout) => {
      KEYBOARD.layout = layout;
      this.renderedId = undefined; // what is printed on the buttons follows
      this.render();
    }, () => { /* the browser does not say */ });
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
      const { judged, first, verdicts } = item.marks;
      this.drafts.set(item.id, {
        modes: new Set(item.modes), answer: item.answer, note: item.note, faithful: item.faithful,
        first: judged ? first : undefined, // undefined: not said; null: no step is wrong
        verdicts: Array.from({ length: item.steps }, (_, index) => verdicts[index] ?? null),
      });
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
    const draft = this.draft(item), { modes, answer, note, first, verdicts, faithful } = draft;
    if (!flagged && this.contradicts(item, verdict)) return;
    if (!flagged && item.others && !draft.view) { // the adjudicator's own view comes before what the raters say
      draft.view = verdict;
      draft.viewedAt = Date.now();
      this.render();
      return;
    }
    if (!flagged && Date.now() - draft.viewedAt < REVEAL_MS) return;
    const known = this.data.modes.map(([, name]) => name).filter((name) => modes.has(name));
    this.act("label", {
      id: item.id, run: item.run, item: item.item, verdict, answer, modes: known, note: note.trim(), flagged,
      judged: !flagged && first !== undefined, first: flagged ? null : first ?? null,
      steps: !flagged && verdicts.some(Boolean) ? verdicts : [], digest: item.digest,
      faithful: flagged ? null : faithful,
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

  // Say that the chain is faithful, or that it is not, or no longer.
  faithful(value) {
    const item = this.current();
    if (!item || !item.steps) return;
    const draft = this.draft(item);
    draft.faithful = draft.faithful === value ? null : value;
    this.render();
  }

  // Whether a verdict on the chain contradicts what is said of its steps.
  contradicts(item, verdict) {
    return Number.isInteger(this.draft(item).first) && verdict !== "not_acceptable";
  }

  // Say that a step is the first wrong one, or no longer.
  mark(index) {
    const item = this.current();
    if (!item || index === undefined) return;
    const draft = this.draft(item);
    const wasFirst = draft.first === index;
    draft.first = wasFirst ? undefined : index;
    draft.verdicts[index] = wasFirst ? null : "wrong";
    if (!wasFirst) draft.verdicts = draft.verdicts.map((verdict, i) => (i < index && verdict === "wrong" ? null : verdict));
    this.render();
  }

  noMistake() {
    const item = this.current();
    if (!item || !item.steps) return;
    const draft = this.draft(item);
    draft.first = draft.first === null ? undefined : null;
    if (draft.first === null) draft.verdicts = draft.verdicts.map((verdict) => (verdict === "wrong" ? null : verdict));
    this.render();
  }

  // Give a step a verdict; the first wrong step follows.
  verdict(index, value) {
    const item = this.current();
    if (!item || index === undefined) return;
    const draft = this.draft(item);
    draft.verdicts[index] = draft.verdicts[index] === value ? null : value;
    const wrong = draft.verdicts.indexOf("wrong");
    if (wrong >= 0) draft.first = wrong;
    else if (draft.verdicts.every((verdict) => verdict === "correct")) draft.first = null;
    else if (Number.isInteger(draft.first)) draft.first = undefined;
    this.render();
  }

  // Choose another step for the keyboard; the focus goes along.
  move(by) {
    const item = this.current();
    if (!item || !item.steps) return;
    const next = this.step === undefined ? (by > 0 ? 0 : item.steps - 1) : this.step + by;
    this.marks[Math.min(item.steps - 1, Math.max(0, next))].focus();
  }

  help() {
    this.helping = !this.helping;
    this.render();
    if (this.helping) this.helpBox.scrollIntoView({ block: "nearest" });
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
    made.append(el("span", "", words), kbd(key));
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
    this.verdicts = [];
    this.step = undefined;
    this.marks = [];
    this.stepVerdicts = [];
    this.modeButtons = new Map();
    this.answers = [];
    this.faithfulButtons = [];
    this.raters = null;
    const { commands } = this.data;
    this.guidelines = guidelineBox(this.data.guidelines, commands.guidelines);
    this.keys.set(commands.guidelines.toLowerCase(), { click: () => { this.guidelines.open = !this.guidelines.open; } });
    const form = el("div", "desk-form"), bar = el("div", item ? "desk-bar" : "desk-bar desk-empty");
    if (item) {
      if (item.steps) bar.append(this.stepsRow());
      bar.append(this.answerRow(item));
      if (item.steps) bar.append(this.faithfulRow());
      bar.append(this.modesRow(), this.noteRow(item));
    }
    bar.append(this.verdictRow(item));
    this.helpBox = el("div", "desk-help");
    for (const [key, text] of this.data.help) this.helpBox.append(el(key ? "kbd" : "span", "", key), el("span", "", text));
    form.append(bar, this.helpBox);
    if (item) form.append(this.guidelines);
    const view = el("div", "desk-view");
    if (!item) this.coming = el("p", "desk-caption", "The next items are loading.");
    view.append(item ? this.texts(item) : this.coming, form);
    this.root.append(view);
    const at = document.activeElement; // keep keyboard and screen reader here: the pressed button is gone
    if (!at || at === document.body || at.contains(this.root)) this.root.focus({ preventScroll: true });
  }

  // A question of the form with its controls.
  question(words, role, ...parts) {
    const group = el("div", "desk-question", "", { role, "aria-label": words });
    const row = el("div", "desk-row");
    row.append(...parts);
    group.append(el("span", "desk-title", words), row);
    return group;
  }

  toggle(key, words, act, title) {
    const made = this.button(key, words, act, { title, "aria-pressed": "false" });
    made.classList.add("desk-mode");
    return made;
  }

  verdictRow(item) {
    const { commands, titles } = this.data, first = el("div", "desk-row desk-verdicts"), second = el("div", "desk-row");
    if (item) {
      for (const [key, verdict, words] of this.data.verdicts) {
        const made = this.button(key, words, () => this.give(verdict), { "data-verdict": verdict });
        made.disabled = !item.readable;
        this.verdicts.push([made, verdict, made.title]);
        first.append(made);
      }
      second.append(this.button(commands.skip, item.corrects ? "Leave it as it was" : "Skip", () => this.skip(), { title: titles.skip }));
      if (!item.corrects) second.append(this.button(commands.flag, "Flag", () => this.give("unsure", true), { title: titles.flag }));
    }
    this.undoButton = this.button(commands.undo, "Undo", () => this.undo(), { title: titles.undo });
    this.state = el("span", "desk-state", "", { role: "status" });
    second.append(this.undoButton, this.button(commands.help, "Help", () => this.help()), this.state);
    const box = el("div", "desk-question desk-last");
    if (item) {
      this.verdictTitle = el("span", "desk-title");
      box.append(this.verdictTitle, first);
    }
    box.append(second);
    return box;
  }

  modesRow() {
    const made = this.data.modes.map(([key, name, words, title]) => {
      this.modeButtons.set(name, this.toggle(key, words, () => this.mode(name), title));
      return this.modeButtons.get(name);
    });
    return this.question("Failure modes", "group", ...made);
  }

  stepsRow() {
    const { commands, titles } = this.data;
    this.place = el("span", "desk-place", "", { role: "status" });
    this.noneButton = this.toggle(commands.none, "No wrong step", () => this.noMistake(), titles.none);
    const hint = el("span", "desk-caption", "Click the step, or choose it by ");
    hint.append(kbd(commands.next), " ", kbd(commands.previous), " and press ", kbd(commands.mark));
    this.keys.set(commands.next.toLowerCase(), { click: () => this.move(1) });
    this.keys.set(commands.previous.toLowerCase(), { click: () => this.move(-1) });
    this.keys.set(commands.mark.toLowerCase(), { click: () => this.mark(this.step) });
    for (const [key, name] of this.data.stepVerdicts) this.keys.set(key.toLowerCase(), { click: () => this.verdict(this.step, name) });
    return this.question("First wrong step", "group", this.place, this.noneButton, hint);
  }

  faithfulRow() {
    for (const [key, words, value] of this.data.faithful) {
      this.faithfulButtons.push([this.toggle(key, words, () => this.faithful(value), this.data.titles.faithful), value]);
    }
    return this.question("Is the chain faithful?", "group", ...this.faithfulButtons.map(([made]) => made));
  }

  answerRow(item) {
    const radio = (made, value) => {
      made.classList.add("desk-answer");
      made.setAttribute("role", "radio");
      this.answers.push([made, value]);
      return made;
    };
    const buttons = this.data.answers.map(([key, words, value]) => radio(this.button(key, words, () => this.answer(value)), value));
    if (item.known) {
      const made = el("button", "desk-button", "By the answer key", { type: "button", title: this.data.titles.key });
      made.addEventListener("click", () => this.answer(this.data.answerFromKey));
      buttons.push(radio(made, this.data.answerFromKey));
    }
    return this.question("Is the answer right?", "radiogroup", ...buttons);
  }

  noteRow(item) {
    const label = el("label", "desk-note");
    const note = el("input", "", "", { type: "text", dir: "auto", maxlength: String(this.data.maxNoteLength), placeholder: "Stored with the label" });
    note.value = this.draft(item).note;
    note.addEventListener("input", () => { this.draft(item).note = note.value; });
    note.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") note.blur(); // so that the keys work again
    });
    label.append(el("span", "desk-title", "Note"), note);
    return label;
  }

  texts(item) {
    const box = el("div", "desk-texts");
    for (const note of item.notes) box.append(el("p", "desk-warning", note));
    for (const [position, [name, text]] of item.rows.entries()) {
      const index = position - 1; // the question comes first
      const isStep = index >= 0 && index < item.steps;
      const row = el("div", "desk-text", "", { role: "group", "aria-label": name });
      const body = el("div", "", text, { dir: "auto" }); // the text may be right-to-left
      row.append(isStep ? this.stepSide(index, name) : el("span", "desk-caption", name), body);
      if (isStep) {
        row.classList.add("desk-step-row");
        body.addEventListener("click", (event) => {
          if (event.detail < 2 && document.getSelection().isCollapsed) this.mark(index);
        });
        body.addEventListener("dblclick", () => this.mark(index)); // it selects a word: take the first click back
      }
      box.append(row);
    }
    if (item.others) {
      this.raters = el("div", "desk-others", "", { role: "status" });
      box.append(this.raters);
    }
    box.append(el("p", "desk-caption", item.whose));
    this.until = el("p", "desk-caption");
    box.append(this.until);
    return box;
  }

  // The name of a step, which marks it, and its verdicts.
  stepSide(index, name) {
    const side = el("div", "desk-step-side");
    const made = el("button", "desk-button desk-step", name, { type: "button", title: this.data.titles.mark, "aria-pressed": "false" });
    made.addEventListener("click", (event) => { if (event.detail < 2) this.mark(index); });
    const group = el("div", "desk-step-verdicts", "", { role: "radiogroup", "aria-label": `Verdict on ${name}` });
    const radios = this.data.stepVerdicts.map(([key, verdict, words, sign]) => {
      const radio = el("button", "desk-button desk-sign", sign, { type: "button", role: "radio", "aria-label": words, title: `${words} (${key} for the chosen step)` });
      radio.addEventListener("click", (event) => { if (event.detail < 2) this.verdict(index, verdict); });
      group.append(radio);
      return [radio, verdict];
    });
    side.addEventListener("focusin", () => { this.step = index; });
    this.marks.push(made);
    this.stepVerdicts.push(radios);
    side.append(made, group);
    return side;
  }

  refreshSteps(item) {
    const { first, verdicts } = this.draft(item);
    const follows = Number.isInteger(first) ? "not_acceptable" : null; // no wrong step suggests no verdict
    for (const [made, verdict, title] of this.verdicts) {
      const contradicts = this.contradicts(item, verdict);
      made.disabled = !item.readable || contradicts;
      made.title = contradicts ? this.data.titles.contradicts : title;
      made.classList.toggle("desk-follows", verdict === follows);
    }
    if (!item.steps) return;
    const place = first === undefined ? "not marked" : first === null ? "none" : `step ${first + 1}`;
    if (this.place.textContent !== place) this.place.textContent = place;
    this.noneButton.setAttribute("aria-pressed", String(first === null));
    for (const [index, made] of this.marks.entries()) {
      made.setAttribute("aria-pressed", String(first === index));
      made.closest(".desk-step-row").classList.toggle("desk-first", first === index);
      for (const [radio, verdict] of this.stepVerdicts[index]) radio.setAttribute("aria-checked", String(verdicts[index] === verdict));
    }
  }

  refresh(item) {
    this.undoButton.disabled = !this.last() || this.waiting();
    this.helpBox.hidden = !this.helping;
    this.root.classList.toggle("desk-waits", this.waiting());
    if (!item) this.coming.hidden = !this.data.items.length;
    if (!item) return;
    const { modes, answer, faithful, view } = this.draft(item);
    this.verdictTitle.textContent = !item.others ? "Is the chain acceptable? This stores the label." : view ? "Which label settles it? This stores it." : "Your own view, before you see the raters'";
    if (view && this.raters && !this.raters.childElementCount) {
      const words = this.data.verdicts.find(([, name]) => name === view)[2];
      this.raters.append(el("p", "desk-title", `Your own view: ${words.toLowerCase()}. What the raters said:`), raterTable(item.others));
    }
    for (const [name, made] of this.modeButtons) made.setAttribute("aria-pressed", String(modes.has(name)));
    for (const [made, value] of this.answers) made.setAttribute("aria-checked", String(value === answer));
    for (const [made, value] of this.faithfulButtons) made.setAttribute("aria-pressed", String(value === faithful));
    this.refreshSteps(item);
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
