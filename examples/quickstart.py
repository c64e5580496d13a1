"""Ten lines: learn a policy from 200,000 users under shuffle privacy."""

import discreet

mdp = discreet.make("RiverSwim", states=4, horizon=6, relabel=0)
trust = discreet.Shuffle(epsilon=1, delta=1e-6)
result = discreet.learn(mdp, learner="flow-ucb", trust=trust, episodes=200_000, seed=0)

print(result.guarantee)
print(f"regret: {result.final_regret:,.0f} (the uniform policy has 88,839)")
print(result.policy.actions)
