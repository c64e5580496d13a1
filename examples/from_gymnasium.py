"""A Gymnasium environment that exposes its model becomes a private learning problem."""

import gymnasium

import discreet

env = gymnasium.make("FrozenLake-v1", map_name="4x4")
mdp = discreet.from_gymnasium(env, horizon=20)
trust = discreet.Shuffle(epsilon=1, delta=1e-6)
result = discreet.learn(
    mdp, learner="flow-ucb", trust=trust, episodes=10_000_000, seed=0, stationary=True
)

print(result.guarantee)
print(f"learnt policy: {discreet.mdp.evaluate(mdp, result.policy):.3f} per user")
print(f"best policy:   {discreet.mdp.solve(mdp).value:.3f} per user")

# the learnt policy plays in the environment it came from; its actions depend on the step
state, _ = env.reset(seed=1)
for step in range(mdp.shape.horizon):
    state, reward, terminated, truncated, _ = env.step(int(result.policy.actions[step, state]))
    if terminated or truncated:
        break
print(f"one episode in Gymnasium: {step + 1} steps, reward {reward:.0f}")
