// A learnt policy where decisions are made: the twin of device/policy.py, which says what the file is.

export const DEFER = "DEFER";
const FORMATS = ["discreet-fit-1", "discreet-policy-1"];

const nameOf = (given, names, what) => {
  if (Number.isInteger(given) && given >= 0 && given < names.length) {
    if (!names.includes(String(given)) || names[given] === String(given)) return names[given];
    throw new RangeError(`Expected a ${what} that means one thing, got ${given}: give its name as text.`);
  }
  if (typeof given === "string" && names.includes(given)) return given;
  throw new RangeError(`Expected a ${what} of the policy, or its number from 0, got ${given}.`);
};

/** What to do at each step and in each state; `content` is the parsed JSON of the file. */
export class LoadedPolicy {
  #rows = new Map();

  constructor(content) {
    const rows = content?.policy;
    if (!Array.isArray(rows) || rows.length === 0) {
      throw new TypeError("Expected a policy as `discreet fit --output FILE.json` writes it.");
    }
    if (!FORMATS.includes(content.format ?? FORMATS[0])) {
      throw new TypeError(`Expected the format ${FORMATS.join(" or ")}, got ${content.format}.`);
    }
    rows.forEach((row, number) => {
      const found = [row?.step, row?.state, row?.action];
      if (!found.every((text) => typeof text === "string")) {
        throw new TypeError(`Expected texts 'step', 'state' and 'action' in row ${number}.`);
      }
      if (typeof (row.defer ?? false) !== "boolean") {
        throw new TypeError(`Expected true or false as 'defer' in row ${number}, got ${row.defer}.`);
      }
      const key = JSON.stringify(found.slice(0, 2));
      if (this.#rows.has(key)) throw new TypeError(`Expected ${key} once, got it twice.`);
      this.#rows.set(key, { action: row.action, defers: row.action === DEFER || row.defer === true });
    });
    this.steps = [...new Set(rows.map((row) => row.step))];
    this.states = [...new Set(rows.map((row) => row.state))];
    if (this.#rows.size !== this.steps.length * this.states.length) {
      throw new TypeError("Expected every state at every step; the file is not whole.");
    }
    this.guarantee = String(content.guarantee ?? "");
    this.simulated = content.simulated === true;
  }

  /** Whether whoever decides today should decide here. */
  defers(state, step) {
    return this.#row(state, step).defers;
  }

  /** What to do; `fallback` is what is done today, for where the policy DEFERs. */
  action(state, step, fallback = null) {
    const row = this.#row(state, step);
    return row.defers && fallback !== null ? fallback : row.action;
  }

  #row(state, step) {
    const names = [nameOf(step, this.steps, "step"), nameOf(state, this.states, "state")];
    return this.#rows.get(JSON.stringify(names));
  }
}
