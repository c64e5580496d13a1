// What Node and Chromium both run: vectors, refusals and draws of device.js, results as plain JSON.

const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Hands out given bytes; `left` says how many nobody asked for. */
function given(bytes) {
  const source = (length) => {
    const drawn = bytes.subarray(source.at, source.at + length);
    source.at += length;
    source.left -= length;
    return drawn;
  };
  return Object.assign(source, { at: 0, left: bytes.length });
}

function encoded(device, vector) {
  const source = given(fromHex(vector.random));
  const loaded = device.load(vector.description);
  const report = loaded.encode(vector.episode, new device.ByteDraws(source));
  const bytes = loaded.toBytes(report);
  const again = toHex(loaded.toBytes(loaded.fromBytes(bytes)));
  return { report, bytes: toHex(bytes), again, left: source.left };
}

/** What JSON cannot hold, but JavaScript can: lists with holes. */
function holed(value, path) {
  const copy = structuredClone(value);
  const list = path.slice(0, -1).reduce((part, key) => part[key], copy);
  delete list[path.at(-1)];
  return copy;
}

const attempts = {
  hole: (device, { description, path }) => device.load(holed(description, path)),
  holes: (device, { description, report, path }) =>
    device.load(description).toBytes(holed(report, path)),
  seal: (device, { data }) => device.cellToBytes(data),
  load: (device, { description }) => device.load(description),
  encode: (device, { description, episode }) => device.load(description).encode(episode),
  read: (device, { description, bytes }) => device.load(description).fromBytes(fromHex(bytes)),
  other: (device, { description, data }) => device.load(description).fromBytes(data),
  pack: (device, { description, report }) => device.load(description).toBytes(report),
  cell: (device, { cells, bytes }) => device.cellFromBytes(fromHex(bytes), { cells }),
  source: (device, { description, episode }) =>
    device.load(description).encode(episode, new device.ByteDraws(() => new Uint8Array(1))),
};

/** The name of the refusal, or what happened instead. */
function refusal(device, attempt) {
  try {
    attempts[attempt.kind](device, attempt);
  } catch (error) {
    return error instanceof device.DeviceError ? error.code : `${error}`;
  }
  return "accepted";
}

function counted(values, size) {
  const counts = new Array(size).fill(0);
  for (const value of values) counts[value] += 1;
  return counts;
}

export function run(device, work) {
  const draws = new device.ByteDraws();
  const { count, cells, weight, numerator, denominator } = work.draws;
  return {
    vectors: work.vectors.map((vector) => encoded(device, vector)),
    refusals: work.refusals.map((attempt) => refusal(device, attempt)),
    below: work.draws.bounds.map((bound) => counted(draws.below(bound, count), bound)),
    noise: counted(draws.noise(cells, weight, count), cells + 1),
    rewards: counted(draws.rewards(new Array(count).fill(0.3)), 2),
    bits: counted(draws.bits(BigInt(numerator), BigInt(denominator), count), 2),
    reports: work.reports.map(({ description, episode }) => {
      const loaded = device.load(description);
      return [0, 1, 2, 3, 4, 5].map(() => JSON.stringify(loaded.encode(episode)));
    }),
    kept: work.reports.map(({ description }) => {
      const changed = structuredClone(description);
      const loaded = device.load(changed);
      changed.policy[0][0] = 1;
      return toHex(loaded.batch) === toHex(device.load(description).batch);
    }),
    twice: [0, 1].map(() => toHex(device.systemBytes(16))),
    groups: work.layouts.map((description) => device.load(description).groups),
    digest: toHex(device.sha256(new TextEncoder().encode("a".repeat(1000)))),
    cell: toHex(device.cellToBytes(work.cell)),
  };
}
