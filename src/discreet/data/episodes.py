"""From rows to episodes: every user's steps in order, none missing, none twice."""

from collections.abc import Callable

import numpy as np

from discreet._spelling import quoted
from discreet._types import BoolArray, IntArray
from discreet.data.layout import Layout, Padding
from discreet.data.readers import Source
from discreet.data.rows import NOTHING, Rows, read_rows
from discreet.errors import InvalidInputError
from discreet.mdp.trajectories import Trajectories


def read_episodes(source: Source, layout: Layout) -> tuple[Trajectories, list[str]]:
    """The episodes of a table, and the names of their users in the same order."""
    rows, names = read_rows(source, layout)
    episodes = _Episodes(rows, names, source.at, layout)
    return episodes.trajectories(), names


class _Episodes:
    """Rows sorted by user and step, checked, and laid out as arrays."""

    def __init__(
        self, rows: Rows, names: list[str], at: Callable[[int], str], layout: Layout
    ) -> None:
        self._names = names
        self._at = at
        self._layout = layout
        self._steps = layout.vocabulary.steps
        self._rows = rows[np.lexsort((rows.steps, rows.users))]

    def trajectories(self) -> Trajectories:
        closing = self._closing()
        self._check_order(closing)
        following = self._following()
        ordinary = np.flatnonzero(~closing)
        self._rows, following = self._rows[ordinary], following[ordinary]
        return self._laid_out(self._ends(following))

    @property
    def _last(self) -> BoolArray:
        """True at each user's last row."""
        users = self._rows.users
        return np.append(users[1:] != users[:-1], True)

    def _closing(self) -> BoolArray:
        """True at rows that hold a state alone: what was seen after a user's last step."""
        rows = self._rows
        no_action, no_reward = rows.actions == NOTHING, np.isnan(rows.rewards)
        closing: BoolArray = no_action & no_reward
        for role, missing in (("action", no_action), ("reward", no_reward)):
            self._refuse_first(
                missing & ~closing,
                f"an action and a reward at every step, got no {role}; fill it in (only a row for "
                f"the state after the last step has neither)",
            )
        self._refuse_first(
            ~closing & (rows.steps == len(self._steps)),
            f"{len(self._steps)} steps, the last called {quoted(self._steps[-1])}, got one more; "
            f"leave its action and reward empty, or name it in the vocabulary",
        )
        return closing

    def _check_order(self, closing: BoolArray) -> None:
        """Each user's steps are 0, 1, 2, ... and a closing row comes last."""
        rows = self._rows
        begins = np.flatnonzero(np.append(True, self._last[:-1]))
        lengths = np.diff(np.append(begins, len(rows)))
        wrong = rows.steps != np.arange(len(rows)) - np.repeat(begins, lengths)
        if wrong.any():
            raise self._wrong_order(int(np.flatnonzero(wrong)[0]))
        self._refuse_first(
            closing & ~self._last,
            "only a user's last row without action and reward, got a later one; fill them in",
        )
        self._refuse_first(
            closing & (rows.steps == 0), "at least one step, got only a state; add its rows"
        )
        self._refuse_first(
            closing & (rows.following != NOTHING),
            "no next state where there is no action, got one; give it a row of its own",
        )

    def _wrong_order(self, index: int) -> InvalidInputError:
        """A step that comes twice, or one that is missing before this row."""
        rows = self._rows
        step = int(rows.steps[index])
        same = index > 0 and rows.users[index - 1] == rows.users[index]
        if same and rows.steps[index - 1] == step:
            before = self._at(int(rows.places[index - 1]))
            return self._refusal(
                index, f"every step once, got it also in {before}; remove one of the two rows"
            )
        missing = int(rows.steps[index - 1]) + 1 if same else 0
        return self._refusal(
            index,
            f"steps without a gap, got none called {self._step(missing)} before this one; add the "
            f"row",
        )

    def _following(self) -> IntArray:
        """The state after each row: that of the user's next row, else the recorded one."""
        rows = self._rows
        inferred = np.where(self._last, NOTHING, np.roll(rows.states, -1))
        both = (inferred != NOTHING) & (rows.following != NOTHING)
        self._refuse_first(
            both & (inferred != rows.following),
            "the state of a user's next row to be this row's next state, got another; correct one",
        )
        return np.where(inferred == NOTHING, rows.following, inferred)

    def _ends(self, following: IntArray) -> IntArray:
        """The state after each user's last step; ends that were not seen are filled in."""
        rows, padding = self._rows, self._layout.padding
        last = self._last
        early = last & (rows.steps < len(self._steps) - 1)
        if padding is None:
            self._refuse_early(early)
        else:
            following = self._arrived(following, early, padding)
        unseen = last & (following == NOTHING)
        return np.where(unseen, rows.states, following)[last]

    def _refuse_early(self, early: BoolArray) -> None:
        if early.any():
            index = int(np.flatnonzero(early)[0])
            missing = int(self._rows.steps[index]) + 1
            raise self._refusal(
                index,
                f"episodes of {len(self._steps)} steps, got no step {self._step(missing)}; add the "
                f"row, or say padding=Padding(END_STATE) if episodes can end early",
            )

    def _arrived(self, following: IntArray, early: BoolArray, padding: Padding) -> IntArray:
        """Episodes that ended early are in an end state, seen or the only one."""
        ends = self._layout.end_states(padding)
        if len(ends) == 1:
            following = np.where(early & (following == NOTHING), ends[0], following)
        self._refuse_first(
            early & ~np.isin(following, ends),
            f"an episode that ends early to arrive in {', '.join(map(quoted, padding.ends))}, got "
            f"one that does not; correct its last next state, or add the missing steps",
        )
        return following

    def _laid_out(self, ends: IntArray) -> Trajectories:
        rows, layout, padding = self._rows, self._layout, self._layout.padding
        users, horizon = len(ends), len(self._steps)
        states = np.repeat(ends[:, None], horizon + 1, axis=1)
        actions = np.zeros((users, horizon), np.int64)
        rewards = np.zeros((users, horizon))
        if padding is not None:
            actions[:] = layout.end_actions(padding)[:, ends].T
            rewards[:] = layout.scaled(np.array(padding.reward))
        cells = rows.users, rows.steps
        states[cells], actions[cells], rewards[cells] = rows.states, rows.actions, rows.rewards
        return Trajectories(states, actions, rewards)

    def _step(self, number: int) -> str:
        names = [*self._steps, self._layout.vocabulary.closing]
        return quoted(names[number])

    def _refuse_first(self, wrong: BoolArray, rule: str) -> None:
        if wrong.any():
            raise self._refusal(int(np.flatnonzero(wrong)[0]), rule)

    def _refusal(self, index: int, rule: str) -> InvalidInputError:
        rows = self._rows
        user = self._names[int(rows.users[index])]
        return InvalidInputError(
            f"Expected {rule}; see user {quoted(user)}, step {self._step(int(rows.steps[index]))}, "
            f"{self._at(int(rows.places[index]))}."
        )
