// discreet.device in JavaScript: the same bytes as the Python package from the same randomness.
//
// One ES module without dependencies, for browsers and Node. docs/reference/wire-format.md describes the format
// byte by byte; discreet/device/*.py is the reference, and names, orders and refusals follow it.
//
//   import { load } from "./device.js";
//   const device = load(description);            // the public description of a batch
//   const report = device.encode(episode);       // {states, actions, rewards}
//   const bytes = device.toBytes(report);

export const VERSION = 1;
/** Bytes of one sealed message. */
export const ENVELOPE = 52;
/** Bytes before the body of a report. */
export const HEADER = 38;
export const STATISTICS = ["transitions", "rewards", "visits"];
/** Bytes; a device makes no larger report, whatever a description asks for. */
export const LARGEST_BODY = 2 ** 24;

const WORD = 2 ** 32;
const BIG_WORD = 1n << 32n;
const DROPPED_OUT = -1;
const MAGIC = [0x64, 0x73, 0x63, 0x72]; // "dscr"
const COMMON = ["version", "encoder", "states", "actions", "horizon", "policy", "support", "start"];

/** Something was refused; `code` says why, in the same words as in Python. */
export class DeviceError extends Error {
  constructor(code, sentence) {
    super(`${code}: ${sentence}`);
    this.name = "DeviceError";
    this.code = code;
  }
}

const bad = (sentence) => new DeviceError("badDescription", sentence);

/** A list without holes, which most methods of a list pass over. */
const isList = (value) => Array.isArray(value) && Object.keys(value).length === value.length;

// ---------------------------------------------------------------- randomness (device/draws.py)

/** Bytes of the operating system; a call gives at most 65,536 of them. */
export function systemBytes(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65536) {
    globalThis.crypto.getRandomValues(bytes.subarray(at, Math.min(at + 65536, length)));
  }
  return bytes;
}

/** Exact draws from a source of bytes: `source(n)` gives a Uint8Array of n random bytes. */
export class ByteDraws {
  constructor(source = systemBytes) {
    this.source = source;
  }

  block(length) {
    const drawn = this.source(length);
    if (!(drawn instanceof Uint8Array) || drawn.length !== length) {
      throw new DeviceError("badRandomness", `Expected ${length} random bytes from the source.`);
    }
    return drawn;
  }

  words(count) {
    return unpackWords(this.block(4 * count));
  }

  /** Uniform integers from 0 to bound - 1, by rejection. */
  below(bound, count) {
    const limit = WORD - (WORD % bound);
    const kept = [];
    while (kept.length < count) {
      for (const word of this.words(count - kept.length)) {
        if (word < limit) kept.push(word % bound);
      }
    }
    return kept;
  }

  /** Cells, uniform with probability weight/2^32, and `cells` (dummy) otherwise. */
  noise(cells, weight, count) {
    const coins = this.words(count);
    const places = this.below(cells, count);
    return coins.map((coin, i) => (coin < weight ? places[i] : cells));
  }

  /** Every reward rounded to a bit: 53 random bits against it, exactly. */
  rewards(rewards) {
    const block = this.block(7 * rewards.length);
    return rewards.map((reward, step) => {
      let coin = 0; // 48 bits and the leading 5 of the seventh byte
      for (let i = 0; i < 6; i++) coin = coin * 256 + block[7 * step + i];
      coin = coin * 32 + (block[7 * step + 6] >> 3);
      return Number(coin < reward * 2 ** 53);
    });
  }

  /** Bits that are one with probability numerator/denominator (BigInt), digit by digit. */
  bits(numerator, denominator, count) {
    const bits = new Array(count).fill(0);
    let undecided = bits.map((_, i) => i);
    while (undecided.length > 0 && numerator > 0n) {
      const digit = Number((256n * numerator) / denominator);
      numerator = (256n * numerator) % denominator;
      const block = this.block(undecided.length);
      undecided.forEach((bit, i) => (bits[bit] = Number(block[i] < digit)));
      undecided = undecided.filter((_, i) => block[i] === digit);
    }
    return bits;
  }
}

// ---------------------------------------------------- the description (device/description.py)

function integer(value, name, least = 1, most = Number.MAX_SAFE_INTEGER) {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw bad(`Expected ${name} to be an integer from ${least} to ${most}.`);
  }
  return value;
}

function fraction(value, name) {
  if (!isList(value) || value.length !== 2) {
    throw bad(`Expected ${name} as [numerator, denominator].`);
  }
  return value.map((part) => {
    if (typeof part !== "string") {
      return BigInt(integer(part, `${name} (a decimal string from 2^53 on)`));
    }
    if (!/^[1-9][0-9]{0,399}$/.test(part)) throw bad(`Expected ${name} in decimal digits.`);
    return BigInt(part);
  });
}

function flipOf(value) {
  const [numerator, denominator] = fraction(value, "flip");
  if (numerator >= denominator || (denominator & (denominator - 1n)) !== 0n) {
    throw bad("Expected flip below one, its denominator a power of two.");
  }
  return [numerator, denominator];
}

function readStatistics(value) {
  const known = isList(value) && value.every((name) => STATISTICS.includes(name));
  if (!known || value.length === 0) {
    throw bad(`Expected statistics among ${STATISTICS.join(", ")}.`);
  }
  if (new Set(value).size !== value.length) throw bad("Expected every statistic once.");
  return value;
}

function ascending(value, name, size) {
  if (!isList(value)) throw bad(`Expected ${name} to be a list.`);
  value.forEach((number) => integer(number, name, 0, size - 1));
  if (value.some((number, i) => i > 0 && value[i - 1] >= number)) {
    throw bad(`Expected ${name} in ascending order.`);
  }
  return value;
}

function isPlainObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function check(data, encoder, more) {
  if (data.version !== VERSION) {
    throw new DeviceError("unknownVersion", `Expected a description of version ${VERSION}.`);
  }
  if (data.encoder !== encoder) {
    throw new DeviceError("unknownEncoder", `Expected a description of the encoder '${encoder}'.`);
  }
  const unknown = Object.keys(data).filter((key) => ![...COMMON, ...more].includes(key));
  if (unknown.length > 0) throw bad(`Expected no key '${unknown.sort()[0]}'.`);
}

function pairsOfRows(data, width, horizon) {
  if (Object.hasOwn(data, "start")) {
    throw bad("Expected start with a policy only; support says it already.");
  }
  const steps = Array.from({ length: horizon }, () => []);
  for (const number of ascending(data.support, "support", horizon * width)) {
    steps[Math.floor(number / width)].push(number % width);
  }
  return steps;
}

function pairsOfPolicy(data, states, actions, horizon) {
  const fits = (rows) => rows.every((row) => isList(row) && row.length === states);
  if (!isList(data.policy) || data.policy.length !== horizon || !fits(data.policy)) {
    throw bad("Expected policy as H lists of S actions.");
  }
  const all = Array.from({ length: states }, (_, s) => s);
  const start = Object.hasOwn(data, "start") ? ascending(data.start, "start", states) : all;
  return data.policy.map((row, h) => {
    row.forEach((action) => integer(action, "an action of the policy", 0, actions - 1));
    return (h > 0 ? all : start).map((s) => s * actions + row[s]);
  });
}

/** Sizes, and for every step the support s·A + a, ascending. */
function readProblem(data) {
  const states = integer(data.states, "states");
  const actions = integer(data.actions, "actions");
  const horizon = integer(data.horizon, "horizon", 1, 2 ** 16);
  integer(states * actions * horizon, "states·actions·horizon");
  if (Object.hasOwn(data, "policy") === Object.hasOwn(data, "support")) {
    throw bad("Expected either policy or support.");
  }
  const pairs = Object.hasOwn(data, "policy")
    ? pairsOfPolicy(data, states, actions, horizon)
    : pairsOfRows(data, states * actions, horizon);
  return { states, actions, horizon, pairs, rows: pairs.map((step) => step.length) };
}

/** A description of its own: who changes one does not change the other. */
function plainCopy(data) {
  const copied = (value) => (Array.isArray(value) ? value.map(copied) : value);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, copied(value)]));
}

/** JSON with sorted keys and no spaces: the same text as in Python. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isPlainObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}

// ---------------------------------------------------------------- episodes (device/description.py)

function readEpisode(data, problem) {
  const keys = isPlainObject(data) ? Object.keys(data).sort().join() : "";
  if (keys !== "actions,rewards,states") {
    throw new DeviceError("badEpisode", "Expected a dictionary of states, actions and rewards.");
  }
  const list = (name, length, fits, rule) => {
    const value = data[name];
    if (!Array.isArray(value) || value.length !== length) {
      throw new DeviceError("badEpisode", `Expected ${length} ${name}.`);
    }
    // not `every`, which skips holes
    for (let i = 0; i < length; i++) {
      if (!fits(value[i])) throw new DeviceError("badEpisode", `Expected ${name} ${rule}.`);
    }
    return value;
  };
  const index = (size) => (v) => Number.isSafeInteger(v) && v >= 0 && v < size;
  const { states, actions, horizon } = problem;
  const reward = (v) => typeof v === "number" && v >= 0 && v <= 1;
  return {
    states: list("states", horizon + 1, index(states), `from 0 to ${states - 1}`),
    actions: list("actions", horizon, index(actions), `from 0 to ${actions - 1}`),
    rewards: list("rewards", horizon, reward, "in [0, 1]"),
  };
}

/** For every step its place in the support, DROPPED_OUT from the first step outside the policy on. */
function rowsOf(episode, problem) {
  let inside = true;
  return problem.pairs.map((pairs, h) => {
    const row = pairs.indexOf(episode.states[h] * problem.actions + episode.actions[h]);
    inside = inside && row >= 0;
    return inside ? row : DROPPED_OUT;
  });
}

// ------------------------------------------------------------------- bytes (device/wire.py)

function packWords(numbers) {
  const bytes = new Uint8Array(4 * numbers.length);
  const view = new DataView(bytes.buffer);
  numbers.forEach((number, i) => view.setUint32(4 * i, number));
  return bytes;
}

function unpackWords(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(4 * i));
}

function packBits(bits, length) {
  const bytes = new Uint8Array(length);
  bits.forEach((bit, i) => (bytes[i >> 3] |= bit << (7 - (i & 7))));
  return bytes;
}

function unpackBits(bytes, count) {
  const bit = (i) => (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  for (let i = count; i < 8 * bytes.length; i++) {
    if (bit(i)) throw new DeviceError("badPadding", "Expected zeros after the last bit.");
  }
  return Array.from({ length: count }, (_, i) => bit(i));
}

/** All parts, one after the other. */
export function joined(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function checkBytes(data) {
  if (!(data instanceof Uint8Array)) throw new DeviceError("notBytes", "Expected bytes.");
  return data;
}

const same = (bytes, others) => bytes.every((byte, i) => byte === others[i]);

function bodyOf(data, kind, batch, length) {
  const report = checkBytes(data);
  const wrong = new DeviceError("wrongLength", `Expected a report of ${HEADER + length} bytes.`);
  if (report.length < HEADER) throw wrong;
  if (!same(report.subarray(0, 5), [...MAGIC, VERSION])) {
    throw new DeviceError("unknownVersion", `Expected a report of version ${VERSION}.`);
  }
  if (!same(report.subarray(5, HEADER), [kind, ...batch])) {
    throw new DeviceError("otherBatch", "Expected a report made for this batch's description.");
  }
  if (report.length !== HEADER + length) throw wrong;
  return report.subarray(HEADER);
}

// --------------------------------------------------------- what devices share (device/wire.py)

function checkLists(report, lengths) {
  const fits =
    isList(report) &&
    report.length === lengths.length &&
    report.every((part, i) => isList(part) && part.length === lengths[i]) &&
    report.every((part) => part.every((number) => Number.isSafeInteger(number)));
  if (!fits) {
    throw new DeviceError("badReport", `Expected ${lengths.length} lists of integers of this batch.`);
  }
}

class Device {
  constructor(data, kind, more) {
    check(data, this.constructor.encoder, more);
    this.description = plainCopy(data);
    this.problem = readProblem(data);
    this.kind = kind;
  }

  /** 32 bytes that name the description. */
  get batch() {
    this.named ??= sha256(new TextEncoder().encode(canonical(this.description)));
    return this.named;
  }

  /** One user's report; call it once per batch, and send the same bytes again after an error. */
  encode(episode, draws = new ByteDraws()) {
    if (this.body > LARGEST_BODY) {
      throw new DeviceError("tooLarge", `Expected a report of at most ${LARGEST_BODY} bytes.`);
    }
    return this.encodeEpisode(readEpisode(episode, this.problem), draws);
  }

  toBytes(report) {
    this.check(report);
    const header = Uint8Array.from([...MAGIC, VERSION, this.kind]);
    return joined(header, this.batch, this.pack(report));
  }

  /** The inverse of `toBytes`; refuses whatever no device of this batch can have sent. */
  fromBytes(data) {
    const report = this.unpack(bodyOf(data, this.kind, this.batch, this.body));
    this.check(report);
    return report;
  }
}

// ------------------------------------------------------ histograms (device/histogram.py)

/** All groups of a batch in the order in which they are sent; `mean` is lambda as two BigInts. */
export function layout(rows, states, statistics, { lastTransitions, users, mean }) {
  const width = { transitions: states, rewards: 2, visits: 1 };
  const found = [];
  for (const statistic of STATISTICS.filter((name) => statistics.includes(name))) {
    const steps = rows.length - (statistic === "transitions" && !lastTransitions ? 1 : 0);
    for (let step = 0; step < steps; step++) {
      const cells = rows[step] * width[statistic] + 1;
      const above = BigInt(cells) * mean[0];
      const below = BigInt(users) * mean[1];
      const noise = (above + below - 1n) / below;
      const parts = below * noise;
      const weight = (BIG_WORD * above + parts - 1n) / parts;
      found.push({
        statistic,
        step,
        cells,
        noise: Number(noise),
        weight: Number(weight < BIG_WORD ? weight : BIG_WORD),
      });
    }
  }
  return found;
}

export class HistogramDevice extends Device {
  static encoder = "histogram";

  constructor(data) {
    super(data, 1, ["statistics", "last_transitions", "users", "lambda"]);
    const statistics = readStatistics(data.statistics);
    if (typeof data.last_transitions !== "boolean") {
      throw bad("Expected last_transitions to be true or false.");
    }
    this.groups = layout(this.problem.rows, this.problem.states, statistics, {
      lastTransitions: data.last_transitions,
      users: integer(data.users, "users"),
      mean: fraction(data.lambda, "lambda"),
    });
    if (this.groups.length === 0) {
      throw bad("Expected a statistic that has a group; transitions need two steps.");
    }
    if (this.groups.some((group) => group.cells >= WORD)) {
      throw bad("Expected fewer than 2^32 cells in a group.");
    }
  }

  get messages() {
    return this.groups.reduce((sum, group) => sum + 1 + group.noise, 0);
  }

  get body() {
    return 4 * this.messages;
  }

  encodeEpisode(episode, draws) {
    const bits = draws.rewards(episode.rewards);
    const own = this.dataCells(episode, bits);
    return this.groups.map((group, i) => {
      const cells = [...draws.noise(group.cells, group.weight, group.noise), own[i]];
      const place = draws.below(1 + group.noise, 1)[0];
      [cells[place], cells[group.noise]] = [cells[group.noise], cells[place]];
      return cells;
    });
  }

  /** The user's own cell in every group: what must never be sent alone. */
  dataCells(episode, bits) {
    const rows = rowsOf(episode, this.problem);
    return this.groups.map(({ statistic, step, cells }) => {
      const row = rows[step];
      const inside = {
        transitions: row * this.problem.states + episode.states[step + 1],
        rewards: 2 * row + bits[step],
        visits: row,
      };
      return row === DROPPED_OUT ? cells - 1 : inside[statistic];
    });
  }

  pack(report) {
    return packWords(report.flat());
  }

  unpack(body) {
    const cells = unpackWords(body);
    let first = 0;
    return this.groups.map((group) => cells.slice(first, (first += 1 + group.noise)));
  }

  check(report) {
    checkLists(report, this.groups.map((group) => 1 + group.noise));
    this.groups.forEach((group, i) => {
      if (report[i].some((cell) => cell < 0 || cell > group.cells)) {
        throw new DeviceError("cellOutOfRange", `Expected cells from 0 to ${group.cells}.`);
      }
    });
  }
}

/** What is sealed in one envelope. */
export function cellToBytes(cell) {
  if (!Number.isSafeInteger(cell) || cell < 0 || cell >= WORD) {
    throw new DeviceError("cellOutOfRange", "Expected a cell from 0 to 2^32 - 1.");
  }
  return packWords([cell]);
}

/** What an analyser finds in one envelope of a group. */
export function cellFromBytes(data, group) {
  const payload = checkBytes(data);
  if (payload.length !== 4) {
    throw new DeviceError("wrongLength", `Expected a cell of 4 bytes, got ${payload.length}.`);
  }
  const cell = unpackWords(payload)[0];
  if (cell > group.cells) {
    throw new DeviceError("cellOutOfRange", `Expected a cell from 0 to ${group.cells}, got ${cell}.`);
  }
  return cell;
}

// ------------------------------------------------------ local mechanisms (device/local.py)

function checkBits(bits) {
  if (bits.some((bit) => bit !== 0 && bit !== 1)) {
    throw new DeviceError("cellOutOfRange", "Expected bits.");
  }
}

/** How often a user reports each statistic, out of the sum of those that are asked for. */
const WEIGHTS = { transitions: 2, rewards: 1 };

export class SplitDevice extends Device {
  static encoder = "split";

  constructor(data) {
    super(data, 4, ["flip", "statistics", "last_transitions"]);
    this.flip = flipOf(data.flip);
    if (typeof data.last_transitions !== "boolean") {
      throw bad("Expected last_transitions to be true or false.");
    }
    const asked = readStatistics(data.statistics);
    const { states, horizon } = this.problem;
    const kept = data.last_transitions ? horizon : horizon - 1;
    const earned = asked.includes("rewards") || asked.includes("visits");
    this.parts = [
      { statistic: "transitions", steps: asked.includes("transitions") ? kept : 0, width: states },
      { statistic: "rewards", steps: earned ? horizon : 0, width: 2 },
    ].filter((part) => part.steps > 0);
    if (this.parts.length === 0) {
      throw bad("Expected a statistic that has a slot; transitions need two steps.");
    }
  }

  get slots() {
    return this.parts.reduce((sum, part) => sum + part.steps, 0);
  }

  /** Statistic and step of a slot. */
  place(slot) {
    let step = slot;
    for (const part of this.parts) {
      if (step < part.steps) return { part, step };
      step -= part.steps;
    }
    throw this.noSlot();
  }

  cells(slot) {
    const { part, step } = this.place(slot);
    return part.width * this.problem.rows[step];
  }

  get body() {
    let most = 0;
    for (let slot = 0; slot < this.slots; slot++) most = Math.max(most, this.cells(slot));
    return 4 + Math.ceil(most / 8);
  }

  encodeEpisode(episode, draws) {
    const rewards = draws.rewards(episode.rewards);
    const slot = this.drawSlot(draws);
    const bits = draws.bits(...this.flip, this.cells(slot));
    const kept = draws.bits(1n, 2n, 1)[0];
    const { part, step } = this.place(slot);
    const row = rowsOf(episode, this.problem)[step];
    if (row !== DROPPED_OUT) {
      const moved = part.statistic === "transitions";
      bits[row * part.width + (moved ? episode.states[step + 1] : rewards[step])] = kept;
    }
    return [[slot], bits];
  }

  /** The statistic by its weight, then one of its steps; nothing depends on an episode. */
  drawSlot(draws) {
    const total = this.parts.reduce((sum, part) => sum + WEIGHTS[part.statistic], 0);
    let number = draws.below(total, 1)[0];
    let first = 0;
    for (const part of this.parts) {
      if (number < WEIGHTS[part.statistic]) return first + draws.below(part.steps, 1)[0];
      number -= WEIGHTS[part.statistic];
      first += part.steps;
    }
  }

  pack(report) {
    return joined(packWords(report[0]), packBits(report[1], this.body - 4));
  }

  unpack(body) {
    const slot = unpackWords(body.subarray(0, 4));
    return [slot, unpackBits(body.subarray(4), this.cells(slot[0]))];
  }

  check(report) {
    checkLists(Array.isArray(report) ? report.slice(0, 1) : report, [1]);
    if (report[0][0] < 0) throw this.noSlot();
    checkLists(report, [1, this.cells(report[0][0])]);
    checkBits(report[1]);
  }

  noSlot() {
    return new DeviceError("cellOutOfRange", `Expected a slot from 0 to ${this.slots - 1}.`);
  }
}

const ENCODERS = [HistogramDevice, SplitDevice];

/** The device that a public description asks for. */
export function load(description) {
  if (!isPlainObject(description)) throw bad("Expected a dictionary.");
  const found = ENCODERS.find((device) => device.encoder === description.encoder);
  if (!found) {
    const names = ENCODERS.map((device) => device.encoder).join(", ");
    throw new DeviceError("unknownEncoder", `Expected an encoder among ${names}.`);
  }
  return new found(description);
}

// ------------------------------------------------------------------------- SHA-256 (FIPS 180-4)

/** The first 32 bits of the fractional parts of a root of the first primes. */
function roots(count, root) {
  const found = [];
  for (let n = 2; found.length < count; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (prime) found.push(fractionOfRoot(BigInt(n), root));
  }
  return found;
}

function fractionOfRoot(n, root) {
  const shifted = n << (32n * root); // the root of this, rounded down, has 32 binary places
  let low = 0n;
  let high = 1n << 48n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** root <= shifted) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

let constants;

/** Synchronous, unlike the browser's own; only public descriptions go through it. */
export function sha256(message) {
  constants ??= { initial: roots(8, 2n), rounds: roots(64, 3n) };
  const { rounds } = constants;
  const state = constants.initial.slice();
  const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(padded.length - 4, (message.length * 8) >>> 0);
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const words = new Uint32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const early = words[i - 15];
      const late = words[i - 2];
      const s0 = turn(early, 7) ^ turn(early, 18) ^ (early >>> 3);
      const s1 = turn(late, 17) ^ turn(late, 19) ^ (late >>> 10);
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const first = (h + s1 + ((e & f) ^ (~e & g)) + rounds[i] + words[i]) >>> 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) >>> 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) >>> 0, c, b, a, (first + second) >>> 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i] + word) >>> 0));
  }
  return packWords(state);
}
