// What is seen and touched. Nothing leaves the browser but what `send` sends, after it was shown.

import { available } from "./hpke.js";
import * as protocol from "./protocol.js";

const at = (id) => document.getElementById(id);
const { hex, fromHex } = protocol;
const given = new URLSearchParams(location.hash.slice(1)); // a fragment is never sent to a server
const page = { charter: null, chain: null, world: null, manifest: null, ticket: null, busy: false };

function element(tag, { text = "", className = "", id = "" } = {}, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (className) made.className = className;
  if (id) made.id = id;
  made.append(...children);
  return made;
}

function button(text, action, { strong = false, id = "" } = {}) {
  const made = element("button", { text, className: strong ? "strong" : "", id });
  made.addEventListener("click", action);
  return made;
}

function say(id, text, className = "") {
  at(id).textContent = text;
  at(id).className = className;
  at(id).hidden = !text;
}

const short = (digits) => `${digits.slice(0, 16)} …`;
const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
const batches = (number) => count(number, "batch").replace(/batchs$/, "batches");
const lasting = (seconds) => {
  const [unit, noun] = [[86400, "day"], [3600, "hour"], [60, "minute"]].find(([u]) => seconds >= 2 * u) ?? [1, "second"];
  return count(Math.round(seconds / unit), noun);
};
/** Never less than the number: a guarantee is not rounded down. */
const roundedUp = (number) => {
  const nearest = Number(number.toFixed(2));
  return (nearest < number ? nearest + 0.01 : nearest).toFixed(2);
};
const ratio = (words) => words.split("/").map(Number).reduce((a, b) => a / b);

// --------------------------------------------------------------------------------- the guarantee

function showCharter(charter) {
  document.title = at("purpose").textContent = charter.purpose;
  at("rehearsal").hidden = !charter.rehearsal;
  const epsilon = ratio(charter.epsilon);
  const delta = ratio(charter.delta);
  const often = charter.participations;
  at("guarantee").textContent =
    `Whatever anybody concludes about you from what the analyser sees becomes at most ` +
    `${roundedUp(Math.exp(epsilon))} times as likely as if you had done something else ` +
    `(epsilon ${epsilon}), but for a chance of ${delta} (delta). This covers your whole episode, ` +
    `all its steps together, among the users of your batch` +
    (often > 1 ? `, and all of your episodes together: up to ${often}, one in a batch.` : ".");
  at("linked").hidden = often === 1;
  const facts = [
    ["study", charter.id],
    ["signed by", charter.signing_key],
    ["a ticket is good for", batches(often) + (often > 1 ? ", one report in each" : "")],
    ["least batch", count(charter.min_users, "user")],
    ["honest users counted on", `${100 * ratio(charter.honest)}% of a batch`],
    ["a batch that is not full", `is deleted after ${lasting(charter.patience)}`],
  ];
  for (const [term, fact] of facts) {
    const long = fact.length > 40 ? "mono" : "";
    at("facts").append(element("dt", { text: term }), element("dd", { text: fact, className: long }));
  }
}

// ------------------------------------------------------------------------------- what goes on

async function look() {
  const totals = await protocol.fetchTotals();
  const manifest = await page.chain.current();
  const done = batches(totals.batches_done);
  if (manifest) {
    say("batch", `${totals.received} of ${count(totals.wanted, "report")} have come. ${done} before it.`);
    at("progress").value = totals.wanted ? totals.received / totals.wanted : 0;
  } else {
    say("batch", `No batch is open at the moment. ${done} so far.`);
    at("progress").value = 0;
  }
  page.manifest = manifest;
  showChain();
}

function showChain() {
  const body = at("chain").tBodies[0];
  for (const one of page.chain.known.slice(body.rows.length)) {
    const row = body.insertRow(0);
    const cells = [one.number, one.users, one.device.messages, short(hex(one.hash))];
    cells.forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text.toLocaleString("en");
      cell.className = i < 3 ? "n" : "mono";
    });
  }
}

// ---------------------------------------------------------------------------------- an episode

/** One of the numbers with these chances; a person's luck needs no secure randomness. */
function drawn(chances) {
  let left = Math.random();
  const place = chances.findIndex((chance) => (left -= chance) < 0);
  return place < 0 ? chances.findLastIndex((chance) => chance > 0) : place;
}

async function begin() {
  const digits = at("ticket").value.trim().toLowerCase();
  if (!protocol.isHex(digits)) return say("hint", "A ticket has 64 digits from 0 to 9 and a to f.", "warn");
  page.ticket = fromHex(digits);
  page.manifest = await page.chain.current();
  if (!page.manifest) return say("hint", "No batch is open at the moment; come again later.", "warn");
  at("enter").hidden = true;
  say("outcome", "");
  at("review").hidden = true;
  const kept = await protocol.outbox.read(page.manifest, page.ticket);
  if (kept) return kept.length ? deliver(page.manifest, kept) : ended((await left()) ? "alreadyInBatch" : "ticketSpent");
  const { charter, world } = page;
  const first = world ? drawn(world.initial) : null;
  const episode = { manifest: page.manifest, states: [], actions: [], rewards: [], told: [] };
  at("play").hidden = false;
  if (first !== null) return step({ ...episode, states: [first] });
  choose("Where do you begin?", charter.start, charter.names.states, (state) =>
    step({ ...episode, states: [state] }),
  );
}

function card(episode, title, ...parts) {
  const steps = page.charter.names.steps;
  const h = Math.min(episode.actions.length, steps.length - 1);
  const where = `${steps[h]} (step ${h + 1} of ${steps.length})`;
  const told = element("ol", { className: "told" });
  told.append(...episode.told.map((text) => element("li", { text })));
  const shown = element("div", { className: "card" });
  shown.append(element("p", { className: "step", text: where }));
  shown.append(element("p", { className: "state", text: title }), ...parts);
  at("play").replaceChildren(shown, told);
}

function choose(question, numbers, names, then) {
  const buttons = numbers.map((n) => button(names[n], () => then(n)));
  card({ actions: [], told: [] }, question, ...buttons);
}

function step(episode) {
  const { names } = page.charter;
  const h = episode.actions.length;
  if (h === names.steps.length) return review(episode);
  const state = episode.states[h];
  const asked = episode.manifest.policy[h][state];
  const holds = ({ states, steps }) =>
    (states ?? names.states).includes(names.states[state]) && (steps ?? names.steps).includes(names.steps[h]);
  const rules = (page.charter.allowed ?? []).filter(holds);
  const buttons = names.actions.flatMap((name, action) => {
    if (!rules.every(({ actions }) => actions.includes(name))) return [];
    const strong = action === asked;
    return [button(name, () => act(episode, action), { strong, id: strong ? "asked" : "" })];
  });
  const advice = `The study asks for: ${names.actions[asked]}. From the first step on which you do
    something else, your report says only that you left.`;
  card(episode, `You are: ${names.states[state]}`, ...buttons, element("p", { text: advice, className: "soft" }));
  return undefined;
}

function act(episode, action) {
  const { world, charter } = page;
  const h = episode.actions.length;
  const state = episode.states[h];
  if (!world) return typed(episode, action);
  const next = drawn(world.transitions[h][state][action]);
  const mean = world.rewards[h][state][action];
  const reward = world.reward_kind === "bernoulli" ? Number(Math.random() < mean) : mean;
  return step(moved(episode, action, reward, next, charter));
}

function typed(episode, action) {
  const { names } = page.charter;
  const next = element("select", { id: "next" });
  next.append(...names.states.map((text, i) => new Option(text, i)));
  const reward = element("input", { id: "reward" });
  Object.assign(reward, { type: "number", min: 0, max: 1, step: "any", value: 0 });
  const go = button("Go on", () => {
    const value = Number(reward.value);
    if (reward.value === "" || !(value >= 0 && value <= 1)) return reward.focus();
    return step(moved(episode, action, value, Number(next.value), page.charter));
  }, { strong: true });
  card(
    episode,
    "What came of it?",
    element("label", { text: "Where are you now?" }, next),
    element("label", { text: "How good was it, from 0 to 1?" }, reward),
    go,
  );
}

function moved(episode, action, reward, next, { names }) {
  const h = episode.actions.length;
  const rounded = Math.round(reward * 100) / 100;
  const text = `${names.steps[h]}: ${names.states[episode.states[h]]}, ${names.actions[action]}; reward ${rounded}, then ${names.states[next]}.`;
  return {
    ...episode,
    states: [...episode.states, next],
    actions: [...episode.actions, action],
    rewards: [...episode.rewards, reward],
    told: [...episode.told, text],
  };
}

// ------------------------------------------------------------------- exactly what leaves the browser

/** What a cell says, in words. */
function meaning(manifest, one, cell) {
  const { names } = page.charter;
  if (cell === one.cells) return "dummy";
  if (cell === one.cells - 1) return "left the policy";
  const wide = { transitions: names.states.length, rewards: 2, visits: 1 }[one.statistic];
  const pair = manifest.device.problem.pairs[one.step][Math.floor(cell / wide)];
  const state = names.states[Math.floor(pair / names.actions.length)];
  const rest = cell % wide;
  if (one.statistic === "transitions") return `${state} → ${names.states[rest]}`;
  return one.statistic === "rewards" ? `${state}: reward ${rest}` : state;
}

function contents(manifest, one, cells) {
  const times = new Map();
  for (const cell of [...cells].sort((a, b) => a - b)) times.set(cell, (times.get(cell) ?? 0) + 1);
  return [...times].map(([cell, n]) => `${n} × ${meaning(manifest, one, cell)}`).join("; ");
}

async function review(episode) {
  const { manifest } = episode;
  at("play").replaceChildren(element("p", { text: "Encoding and sealing ...", id: "sealing" }));
  const { states, actions, rewards } = episode;
  const cells = manifest.device.encode({ states, actions, rewards });
  const bytes = await protocol.sealReport(cells, manifest, page.ticket, (done, all) =>
    say("sealing", `Sealing: ${done} of ${all} groups ...`),
  );
  try {
    if (!(await protocol.outbox.keep(manifest, page.ticket, bytes))) return elsewhere();
  } catch {
    say("hint", "This browser keeps nothing: leave the page open until your report was taken.", "warn");
  }
  at("play").hidden = true;
  showReport(episode, cells, bytes);
}

function showReport(episode, cells, bytes) {
  const { manifest } = episode;
  const rows = manifest.device.groups.map((one, i) => {
    const place = `${one.statistic}, ${page.charter.names.steps[one.step]}`;
    const texts = [place, String(cells[i].length), contents(manifest, one, cells[i])];
    const row = element("tr");
    row.append(...texts.map((text, j) => element("td", { text, className: j === 1 ? "n" : "" })));
    return row;
  });
  const head = element("tr");
  head.append(...["group", "messages", "what they say, before they are sealed"].map((text, j) =>
    element("th", { text, className: j === 1 ? "n" : "" }),
  ));
  const table = element("table", { id: "messages" }, element("thead", {}, head), element("tbody", {}, ...rows));
  const told = element("ol", { className: "told" });
  told.append(...episode.told.map((text) => element("li", { text })));
  const envelopes = `${count(cells.flat().length, "envelope")} of 52 bytes`;
  const digits = hex(bytes);
  const parts = [
    ["version", digits.slice(0, 2)],
    ["ticket (the shuffler keeps its digest, apart from the rest)", digits.slice(2, 66)],
    ["manifest", digits.slice(66, 130)],
    [envelopes, digits.slice(130).match(/.{104}/g).join("\n")],
  ];
  at("review").replaceChildren(
    element("h3", { text: "Your episode; it stays here" }),
    told,
    element("h3", { text: "What leaves your browser" }),
    element("p", { text: "In each group one message is yours and all others are noise that this browser drew just now. " +
      "Each travels in an envelope of its own; the shuffler mixes them with everybody's before the analyser opens them." }),
    element("div", { className: "scroll" }, table),
    element("p", { id: "size", text: `All of it is one request, POST /v1/reports, of ${count(bytes.length, "byte")}:` }),
    ...parts.map(([name, text]) =>
      element("details", {}, element("summary", { text: name }), element("pre", { text })),
    ),
    button("Send it", () => deliver(manifest, bytes), { strong: true, id: "send" }),
    button("Do not send, forget it", () => forget(manifest), { id: "forget" }),
  );
  at("review").hidden = false;
  at("send").focus({ preventScroll: false });
}

/** Another window of this browser works with this ticket: two encodings must not leave it. */
function elsewhere() {
  at("review").hidden = at("play").hidden = true;
  at("enter").hidden = false;
  say("outcome", "Another window of this browser has sealed a report for this ticket. Go on there, or begin again here.", "warn");
}

async function forget(manifest) {
  if (page.busy || !(await protocol.outbox.clear(manifest, page.ticket))) return elsewhere();
  at("review").hidden = true;
  at("enter").hidden = false;
  say("outcome", "Nothing was sent, and nothing is kept.");
}

/** Batches for which the ticket is still good, as far as this browser knows; the shuffler knows better. */
async function left() {
  const times = await protocol.outbox.times(page.chain.known, page.ticket).catch(() => 1);
  return Math.max(0, page.charter.participations - times);
}

const ENDS = {
  accepted: ["Your report was taken. Nothing but the sealed messages left this browser.", "good"],
  alreadyInBatch: ["This ticket has a report in this batch already; nothing was counted twice.", "warn"],
  ticketSpent: ["This ticket has taken part already, as often as it may; nothing was counted twice.", "warn"],
  policyOutdated: ["The batch was complete before your report came, and the shuffler keeps nothing of it. Begin again with the next policy.", "warn"],
  noOpenBatch: ["The batch was complete before your report came. Come again when the next one is open.", "warn"],
  unknownTicket: ["The shuffler does not know this ticket. Check its digits.", "warn"],
};

const TAKEN = ["accepted", "alreadyInBatch", "ticketSpent"];

async function deliver(manifest, bytes) {
  if (page.busy) return;
  page.busy = true;
  at("review").replaceChildren(element("p", { text: "Sending ..." })); // neither again nor forget
  let code = "accepted";
  try {
    await protocol.outbox.sending(manifest, page.ticket).catch(() => {}); // a browser that keeps nothing
    await protocol.send(bytes);
  } catch (error) {
    code = error.code ?? "broken";
  }
  page.busy = false;
  if (!(code in ENDS)) {
    at("review").hidden = false;
    const again = button("Send the same bytes again", () => deliver(manifest, bytes), { strong: true });
    at("review").replaceChildren(again);
    return say("outcome", `Not sent (${code}). The sealed bytes are kept in this browser and stay the same.`, "warn");
  }
  // Whatever a shuffler claims, nobody gets a second encoding: other bytes never follow for this manifest.
  if (TAKEN.includes(code)) {
    await protocol.outbox.settle(manifest, page.ticket).catch(() => {}); // a browser that keeps nothing
  }
  await ended(code);
}

async function ended(code) {
  at("review").hidden = at("play").hidden = true;
  const [words, mood] = ENDS[code];
  const more = code === "accepted" || code === "alreadyInBatch" ? await left() : null;
  at("enter").hidden = code === "accepted" && !more;
  const kept = more ? ` Keep this ticket: it is good for ${batches(more)} more.` : " This ticket is spent.";
  say("outcome", more === null ? words : words + kept, mood);
  await look();
}

// ------------------------------------------------------------------------------------ the start

async function start() {
  at("ticket").value = given.get("ticket") ?? "";
  // Who looks at the address, the history or a screenshot of it does not see the ticket.
  history.replaceState(null, "", given.has("study") ? `#study=${given.get("study")}` : "#");
  page.charter = await protocol.fetchCharter(given.get("study"));
  showCharter(page.charter);
  page.chain = new protocol.Chain(page.charter);
  page.world = await protocol.fetchWorld();
  if (!(await available())) {
    at("enter").hidden = true;
    say("cannot", "This browser lacks X25519, so it cannot seal a report. Take part with a newer one.", "warn");
  }
  at("begin").addEventListener("click", () => begin().catch(fail));
  await look();
  document.body.dataset.ready = "yes";
  setInterval(() => look().catch(() => say("batch", "The shuffler does not answer at the moment.")), 3000);
}

function fail(error) {
  say("error", error.message, "warn");
  document.body.dataset.ready = "failed";
}

start().catch(fail);
