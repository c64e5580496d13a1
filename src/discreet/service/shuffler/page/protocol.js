// Charter, manifests and reports in JavaScript: what {charter,manifest,report}.py of
// discreet/service/protocol say, for one participant. What does not fit is refused with an Error
// that says why.

import { load, cellToBytes, joined, ENVELOPE } from "./device.js";
import { Sealer } from "./hpke.js";

const subtle = globalThis.crypto.subtle;
const text = (words) => new TextEncoder().encode(words);
export const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
export const fromHex = (digits) =>
  Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
export const isHex = (digits) => /^([0-9a-f]{2}){32}$/.test(digits);
const sha256 = async (bytes) => new Uint8Array(await subtle.digest("SHA-256", bytes));

/** A refusal of the shuffler, by its code. */
export class Refused extends Error {
  constructor(code, title) {
    super(title);
    this.code = code;
  }
}

/** Where the study is: at the root, or one of several at /studies/NAME. */
const base = globalThis.location?.pathname.match(/^\/studies\/[0-9a-f]+/)?.[0] ?? "";

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(base + path, { cache: "no-store", ...options });
  } catch {
    throw new Refused("unreachable", "The shuffler did not answer; nobody knows what arrived.");
  }
  if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(problem.code ?? "broken", problem.title ?? `Status ${answer.status}.`);
}

/** The charter that the shuffler serves; `name` is the study's, if somebody else told it. */
export async function fetchCharter(name) {
  const bytes = await ask("/v1/charter");
  const id = hex(await sha256(bytes));
  if (name && name !== id) throw new Error("The shuffler serves another study than your link names.");
  const charter = JSON.parse(new TextDecoder().decode(bytes));
  if (charter.version !== 1 || charter.kind !== "charter") {
    throw new Error(`The charter is of version ${charter.version}, this page knows version 1. Reload the page.`);
  }
  return { participations: 1, ...charter, id };
}

/** Numerator and denominator of "9/10" or "1". */
const rational = (words) => [...words.split("/"), "1"].slice(0, 2).map(BigInt);

function describe(charter, policy, users) {
  const [above, below] = rational(charter.honest);
  const reliable = (above * BigInt(users)) / below;
  if (reliable < 1n) throw new Error("Nobody is counted on in a batch of this size.");
  const mean = charter.lambda.map(BigInt);
  return {
    version: 1,
    encoder: "histogram",
    states: charter.names.states.length,
    actions: charter.names.actions.length,
    horizon: charter.names.steps.length,
    policy,
    start: charter.start,
    statistics: charter.statistics,
    last_transitions: charter.last_transitions,
    users,
    lambda: [mean[0] * BigInt(users), mean[1] * reliable].map(String),
  };
}

async function verified(signature, data, key) {
  let made;
  try {
    made = await subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    throw new Error("This browser cannot check Ed25519 signatures; use a newer one.");
  }
  const signed = joined(text("discreet-manifest/1\n"), data);
  return subtle.verify({ name: "Ed25519" }, made, signature, signed);
}

const fieldsOf = (bytes) => JSON.parse(new TextDecoder("ascii").decode(bytes.slice(129)));

/** A manifest from its bytes: signature, charter and noise checked; `signer` is the key's. */
export async function readManifest(bytes, charter, signer = charter.signing_key) {
  const words = new TextDecoder("ascii").decode(bytes.slice(0, 129));
  const data = bytes.slice(129);
  const key = fromHex(signer);
  if (words[128] !== "\n" || !(await verified(fromHex(words.slice(0, 128)), data, key))) {
    throw new Error("The manifest is not signed by the analyser of the study.");
  }
  const fields = fieldsOf(bytes);
  if (fields.version !== 1 || fields.study !== charter.id) {
    throw new Error("The manifest belongs to another study.");
  }
  if (fields.users < charter.min_users) throw new Error("The batch is smaller than the charter allows.");
  const device = load(describe(charter, fields.policy, fields.users));
  const layout = device.groups.map((group) => [group.cells, group.noise, group.weight]);
  if (JSON.stringify(layout) !== JSON.stringify(fields.layout)) {
    throw new Error("The manifest asks for another noise than the charter.");
  }
  return { ...fields, device, hash: await sha256(data) };
}

function checkFollows(manifest, before, charter) {
  const number = before ? before.number + 1 : 0;
  const previous = before ? hex(before.hash) : charter.id;
  const last = before ? before.batch : 0;
  const due = manifest.abandons === null ? [last, before ? last + 1 : 0] : [0, last];
  const fits =
    manifest.number === number &&
    manifest.previous === previous &&
    due[0] <= manifest.batch &&
    manifest.batch <= due[1] &&
    (manifest.abandons ?? -1) < number;
  if (!fits) throw new Error("The manifest does not follow the one before it.");
}

/** All manifests, each checked and chained to the one before; goes on from what is known. */
export class Chain {
  constructor(charter) {
    this.charter = charter;
    this.known = [];
  }

  /** The manifest of the open batch, or null if none is open. */
  async current() {
    try {
      return await this.follow(await ask("/v1/manifest"));
    } catch (error) {
      if (error.code === "noOpenBatch") return null;
      throw error;
    }
  }

  async follow(bytes) {
    const { number } = fieldsOf(bytes);
    const known = this.known[number];
    if (known) {
      if (hex(known.hash) !== hex(await sha256(bytes.slice(129)))) {
        throw new Error("Two manifests have one number.");
      }
      if (number !== this.known.length - 1) throw new Error("An old manifest came back.");
      return known;
    }
    while (this.known.length < number) {
      await this.add(await ask(`/v1/manifests/${this.known.length}`));
    }
    return this.add(bytes);
  }

  async add(bytes) {
    const before = this.known.at(-1);
    const manifest = await readManifest(bytes, this.charter, before?.signer);
    checkFollows(manifest, before, this.charter);
    this.known.push(manifest);
    return manifest;
  }
}

/** The sealed report: version, ticket, manifest's hash, envelopes in the order of the groups. */
export async function sealReport(cells, manifest, ticket, tell = () => {}) {
  const sealer = new Sealer(fromHex(manifest.key));
  const envelopes = [];
  for (const [place, one] of cells.entries()) {
    const number = new Uint8Array(4);
    new DataView(number.buffer).setUint32(0, place);
    const info = joined(text("discreet-envelope"), Uint8Array.of(1), manifest.hash, number);
    for (const cell of one) envelopes.push(await sealer.seal(cellToBytes(cell), info));
    tell(place + 1, cells.length);
  }
  if (envelopes.some((sealed) => sealed.length !== ENVELOPE)) {
    throw new Error("This browser seals in another way than the study's devices. Nothing was sent; use another browser.");
  }
  return joined(Uint8Array.of(1), ticket, manifest.hash, ...envelopes);
}

const SENT = "sent ";
/** One window of this browser at a time. */
const alone = (job) => navigator.locks.request("discreet-outbox", job);

/** Sealed reports are kept until they are taken: after an error the same bytes are sent again. */
export const outbox = {
  key: async (manifest, ticket) => `discreet:${hex(await sha256(joined(manifest.hash, ticket)))}`,
  async read(manifest, ticket) {
    const kept = localStorage.getItem(await this.key(manifest, ticket));
    if (kept === null) return null;
    return Uint8Array.from(atob(kept.replace(SENT, "")), (char) => char.charCodeAt(0));
  },
  async write(manifest, ticket, bytes) {
    const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    localStorage.setItem(await this.key(manifest, ticket), btoa(letters));
  },
  /** Keep these bytes, unless another window has kept others: whether they are kept. */
  keep: (manifest, ticket, bytes) =>
    alone(async () => {
      if ((await outbox.read(manifest, ticket)) !== null) return false;
      await outbox.write(manifest, ticket, bytes);
      return true;
    }),
  /** From now on they may have left the browser, whatever becomes of the request. */
  async sending(manifest, ticket) {
    const key = await this.key(manifest, ticket);
    await alone(() => {
      const kept = localStorage.getItem(key);
      if (kept && !kept.startsWith(SENT)) localStorage.setItem(key, SENT + kept);
    });
  },
  /** It was answered: the bytes go, and that there were some stays known. */
  settle: (manifest, ticket) => outbox.write(manifest, ticket, new Uint8Array()),
  /** In how many batches of these manifests a report was answered, as far as this browser knows. */
  async times(manifests, ticket) {
    const keys = await Promise.all(manifests.map((one) => this.key(one, ticket)));
    return new Set(manifests.filter((_, i) => localStorage.getItem(keys[i]) === "").map((one) => one.batch)).size;
  },
  /** Forget what was never sent: whether that is so. */
  async clear(manifest, ticket) {
    const key = await this.key(manifest, ticket);
    return alone(() => {
      const kept = localStorage.getItem(key);
      if (kept !== null && (!kept || kept.startsWith(SENT))) return false;
      localStorage.removeItem(key);
      return true;
    });
  },
};

export async function send(bytes) {
  await ask("/v1/reports", { method: "POST", body: bytes });
}

/** Public totals by name. */
export async function fetchTotals() {
  const lines = new TextDecoder().decode(await ask("/metrics")).trim().split("\n");
  return Object.fromEntries(
    lines.map((line) => line.replace("discreet_", "").split(" ")).map(([k, v]) => [k, Number(v)]),
  );
}

export const fetchWorld = async () => JSON.parse(new TextDecoder().decode(await ask("/page/world.json")));
