"""Private learning from real devices: three roles that different organisations run.

The *shuffler* is the only server: it takes sealed reports, waits for n distinct users, permutes,
hands over, forgets. The *analyser* is a worker without an inbound port: it owns the study, signs
manifests, opens envelopes, tells the study. The *device* plays the public policy, encodes, seals,
sends. The *enroller* hands out tickets and must not be the analyser.

What is said between them, one noun per file:

- `canonical`: the one JSON text of plain values, and nothing else accepted.
- `charter`: what a study promises, for ever; its hash is the study's name.
- `manifest`: one batch: policy, users, key; signed, chained, checked against the charter.
- `envelope`: one sealed cell; `report`: what one device sends; `ticket`: who may send one.
- `problems`: every refusal, with one code per reason.

What keeps it: `stores/` (`base` is the state machine ``open -> full -> sealed -> done``, or
``open -> expired``; `sqlite` and `postgres` speak it; `shuffling` is the permutation).

Who does it: `shuffler` (the queue before the store, and time), `web` (its endpoints), `server`
(uvicorn, slow clients cut); `analyser` (an idempotent loop), `keys` (its secrets on disk),
`opening` (envelopes in processes, or on Ray); `participant` (a device: keeps and resends the same
sealed bytes), `client` (both speak to the shuffler through it). `crowd` plays simulated users.
`configs` are the files of the roles, `founding` writes them all, `verification` checks what is
public. `clock` is where time comes from: nowhere else.

Wherever something is committed a role calls ``at("name.before")`` and ``at("name.after")``, a
function that it was given and that does nothing in a deployment.
"""
