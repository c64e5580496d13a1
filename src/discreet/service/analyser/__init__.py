"""The worker that owns the study: signs manifests, opens envelopes, tells the study."""
