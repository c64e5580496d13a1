"""Gymnasium ids: ``discreet/RiverSwim-v0`` and so on, one for each environment."""

from discreet.mdp.environments.registry import environment_names


def register_environments() -> None:
    """Register every environment with Gymnasium; doing it twice does no harm.

    `import discreet` arranges that this happens as soon as Gymnasium is imported, before or after.
    """
    from gymnasium.envs.registration import register, registry

    for name in environment_names():
        identity = f"discreet/{name}-v0"
        if identity not in registry:
            register(
                id=identity,
                entry_point="discreet.mdp.gymnasium_bridge:make_environment",
                kwargs={"name": name},
            )
