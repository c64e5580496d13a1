"""Private learning from real devices: three roles that different organisations run.

The *shuffler* is the only server: it takes sealed reports, waits for n distinct users, permutes,
hands over, forgets. The *analyser* is a worker without an inbound port: it owns the study, signs
manifests, opens envelopes, tells the study. The *participant*'s device plays the public policy,
encodes, seals, sends. The *enroller* hands out tickets and must not be the analyser.

One folder per role, and none of them imports another; what they say to each other is a folder, too:

- `protocol/`: `canonical` (the one JSON text of plain values, and nothing else accepted),
  `charter` (what a study promises, for ever; its hash is the study's name), `manifest` (one batch:
  policy, users, key; signed, chained, checked against the charter), `envelope` (one sealed cell),
  `report` (what one device sends), `ticket` (who may send one), `noise` (is the batch as good as
  its certificate?), `problems` (every refusal, with one code per reason).
- `shuffler/`: `shuffler` (the queue before the store, and time), `web` and `express` (its
  endpoints), `openapi` (the same as a document), `server` (uvicorn, slow clients cut), `stores/`
  (`base` is the state machine ``open -> full -> sealed -> done``, or ``open -> expired``; `sqlite`
  and `postgres` speak it; `shuffling` is the permutation), `page/` (what people see at ``/``),
  `process` (from its file to what runs).
- `analyser/`: `analyser` (an idempotent loop), `keys` (its secrets on disk), `opening` (envelopes
  in processes, or on Ray), `process`.
- `participant/`: `participant` (keeps and resends the same sealed bytes), `process`.

Beside them: `client` (analyser and devices speak to the shuffler through it), `configs` (the files
of the roles), `running` (what every process does), `clock` (where time comes from: nowhere else),
`hooks`; `setup` writes all files, `verification` checks what is public, `demo/` plays all roles
on one machine.

Wherever something is committed a role calls ``at("name.before")`` and ``at("name.after")``, a
function that it was given and that does nothing in a deployment.
"""
