// HPKE (RFC 9180) in base mode, single shot: X25519, HKDF-SHA256, AES-128-GCM, by WebCrypto.

import { joined } from "./device.js";

const subtle = globalThis.crypto.subtle;
const text = (words) => new TextEncoder().encode(words);
const KEM = Uint8Array.from([...text("KEM"), 0x00, 0x20]);
const SUITE = Uint8Array.from([...text("HPKE"), 0x00, 0x20, 0x00, 0x01, 0x00, 0x01]);
const NOTHING = new Uint8Array(0);
const LABEL = text("HPKE-v1");

/** A key of zeros and an empty one are the same to HMAC; WebCrypto takes only the former. */
async function hmac(key, data) {
  const raw = key.length ? key : new Uint8Array(32);
  const made = await subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", made, data));
}

const extract = (suite, salt, label, input) => hmac(salt, joined(LABEL, suite, text(label), input));

/** At most 32 bytes: one block. */
async function expand(suite, secret, label, info, length) {
  const head = Uint8Array.from([length >> 8, length & 255]);
  const block = await hmac(secret, joined(head, LABEL, suite, text(label), info, Uint8Array.of(1)));
  return block.slice(0, length);
}

/** Whether this browser can seal: X25519 is missing in older ones. */
export async function available() {
  try {
    await subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
    return true;
  } catch {
    return false;
  }
}

/** Seals for one public key (32 bytes); `pair` is given by tests alone. */
export class Sealer {
  constructor(publicKey) {
    this.publicKey = publicKey;
  }

  async seal(plain, info, pair) {
    this.key ??= await subtle.importKey("raw", this.publicKey, { name: "X25519" }, true, []);
    const own = pair ?? (await subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]));
    const head = new Uint8Array(await subtle.exportKey("raw", own.publicKey));
    const shared = new Uint8Array(
      await subtle.deriveBits({ name: "X25519", public: this.key }, own.privateKey, 256),
    );
    const secret = await this.shared(shared, head);
    const { key, nonce } = await schedule(secret, info);
    const aes = await subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    const sealed = await subtle.encrypt({ name: "AES-GCM", iv: nonce }, aes, plain);
    return joined(head, new Uint8Array(sealed));
  }

  async shared(agreed, head) {
    const secret = await extract(KEM, NOTHING, "eae_prk", agreed);
    return expand(KEM, secret, "shared_secret", joined(head, this.publicKey), 32);
  }
}

async function schedule(shared, info) {
  const psk = await extract(SUITE, NOTHING, "psk_id_hash", NOTHING);
  const bound = await extract(SUITE, NOTHING, "info_hash", info);
  const context = joined(Uint8Array.of(0), psk, bound);
  const secret = await extract(SUITE, shared, "secret", NOTHING);
  return {
    key: await expand(SUITE, secret, "key", context, 16),
    nonce: await expand(SUITE, secret, "base_nonce", context, 12),
  };
}
