"""Private learning from real devices: three roles that different organisations run.

The *shuffler* is the only server: it takes sealed reports, waits for n distinct users, permutes,
hands over, forgets. The *analyser* is a worker to which only its operator connects: it owns the
study, signs manifests, opens envelopes, tells the study. The *participant*'s device plays the
public policy, encodes, seals, sends. The *enroller* hands out tickets and must not be the analyser.

No role imports another. What they say to each other is `protocol/`: `canonical` (the one JSON text
of plain values), `charter` (what a study guarantees, for ever; its hash is the study's name),
`manifest` (one batch: policy, users, key; signed, chained, checked against the charter), `report`
(what one device sends, in sealed envelopes), `ticket` (who may send one), `problems` (every
refusal, with one code per reason).

- `shuffler/`: `shuffler` (the queue before the store, and time), `store` (the state machine and the
  permutation; `sqlite` and `postgres` speak it), `web` (endpoints, the page), `server`.
- `analyser` (an idempotent loop), `worker` (that loop as a process, backups), `opening` (its keys,
  and envelopes in processes or on Ray).
- `participant` (keeps and resends the same sealed bytes).
- `monitor` (the analyser's page for its operator), `health` (checks and logs of all roles).
- `client` (analyser and devices speak to the shuffler through it), `configs` (files of the roles,
  clock, signals), `setup` writes all files, `verification` checks what is public, `demo/` plays
  all roles on one machine.

Wherever something is committed a role calls ``at("name.before")`` and ``at("name.after")``, a
function that it was given and that does nothing in a deployment.
"""
