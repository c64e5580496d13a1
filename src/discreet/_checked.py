"""What the checks of models, learners, mechanisms and studies have in common."""


class Checked:
    """What a check found: sentences in ``problems``, none if all is well."""

    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """No problems."""
        return not self.problems
