"""One-line privacy bugs, each with the tests that must fail when it is planted.

A mutant is text that stands once in the source and what replaces it; the file is found by the text,
so that the catalogue survives moves. ``tests`` are names of test functions (with a part in square
brackets where one case is enough).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A bug that costs privacy.

    Attributes:
        name: short and unique.
        bug: what goes wrong, in words.
        find: text that stands exactly once below src.
        replace: what takes its place.
        tests: at least one of these must fail.
    """

    name: str
    bug: str
    find: str
    replace: str
    tests: tuple[str, ...]


_ONE_SHOT = (
    Mutant(
        "gaussian-halved",
        "the batch draws half of the noise that the plan states",
        "return self.noise.draw(sampler, cells)",
        "return self.noise.scaled(0.5).draw(sampler, cells)",
        ("test_noise_has_the_stated_variance_and_cells_are_independent",),
    ),
    Mutant(
        "gaussian-shared",
        "one draw for all counters of a statistic",
        "return self.noise.draw(sampler, cells)",
        "return self.noise.draw(sampler, 1).repeat(cells)",
        ("test_noise_has_the_stated_variance_and_cells_are_independent",),
    ),
    Mutant(
        "laplace-halved",
        "the distribution of Laplace noise draws half of what it states",
        "return sampler.discrete_laplace(self.scale, size)",
        "return sampler.discrete_laplace(self.scale / 2, size)",
        ("test_noise_has_the_stated_variance_and_cells_are_independent",),
    ),
    Mutant(
        "laplace-add-remove",
        "sensitivity of add/remove instead of replace-one",
        "discrete_laplace_scale(sensitivity.l1, float",
        "discrete_laplace_scale(sensitivity.l1 // 2, float",
        ("test_golden_laplace",),
    ),
    Mutant(
        "gaussian-add-remove",
        "half of the moved counters are composed",
        "sensitivity.cells, trust.epsilon, trust.delta, pile=sensitivity.pile",
        "sensitivity.cells // 2, trust.epsilon, trust.delta, pile=sensitivity.pile",
        ("test_golden_gaussian",),
    ),
    Mutant(
        "one-statistic-for-three",
        "the sensitivity forgets all statistics but one",
        "moves = horizon * len(statistics)",
        "moves = horizon",
        ("test_the_three_statistics_together",),
    ),
    Mutant(
        "pooled-without-piles",
        "units that pile up in one pooled counter are composed as if they were spread",
        "pile = horizon if stationary else 1\n        units",
        "pile = 1\n        units",
        ("test_no_pair_of_episodes_moves_further_and_one_moves_as_far",),
    ),
    Mutant(
        "unplayed-data",
        "visits off the policy are released",
        "return counts.at(support)",
        "return counts.at(support | (counts.visits > 0))",
        ("test_visits_outside_the_public_policy_count_as_nothing",),
    ),
    Mutant(
        "refusal-off-policy",
        "a batch is refused because one user left the policy",
        "return counts.at(support)",
        "if counts.visits[~support].any():\n"
        '        raise InvalidInputError("off the policy")\n'
        "    return counts.at(support)",
        ("test_visits_outside_the_public_policy_count_as_nothing",),
    ),
    Mutant(
        "user-counted-twice",
        "counts with two episodes of one user are released",
        "(dense_of(visits, counts.support).sum(axis=(1, 2)) > counts.users)",
        "(dense_of(visits, counts.support).sum(axis=(1, 2)) > 2 * counts.users)",
        ("test_counts_beyond_their_sensitivity_are_refused",),
    ),
    Mutant(
        "unbounded-rewards",
        "rewards above one are released",
        "if (counts.row_rewards > visits).any():",
        "if (counts.row_rewards > 9 * visits).any():",
        ("test_counts_beyond_their_sensitivity_are_refused",),
    ),
    Mutant(
        "never-simulated",
        "a release with seeded noise claims to protect people",
        "return replace(self, simulated=not secure)",
        "return replace(self, simulated=False)",
        ("test_stamping_changes_the_stamp_only", "test_secure_releases_are_stamped"),
    ),
    Mutant(
        "floats-released",
        "floating-point sums pass for released integers",
        "if not np.issubdtype(np.asarray(integers).dtype, np.integer):",
        "if False:",
        ("test_floats_are_refused_as_released_state",),
    ),
)

_CENTRED = (
    Mutant(
        "cells-two-groups-fewer",
        "all transitions of a step are left out of the sensitivity for each that is not released",
        'moves -= "transitions" in statistics and not last_transitions',
        'moves -= 2 * ("transitions" in statistics and not last_transitions)',
        ("test_no_pair_moves_the_cells_further", "test_lengths_that_the_docs_give"),
    ),
    Mutant(
        "cells-last-transitions-for-nothing",
        "the transitions of the last step are released and not counted in the sensitivity",
        "last_transitions=last,\n            participations=m,",
        "last_transitions=False,\n            participations=m,",
        (
            "test_golden_noise_is_the_same_on_every_cell",
            "test_the_audit_finds_the_guarantee_attained",
        ),
    ),
    Mutant(
        "cells-visits-bare",
        "visits are released beside the two cells of a reward, without noise",
        '"visits": zeros + ones, "rewards": ones - zeros',
        '"visits": visits, "rewards": ones - zeros',
        ("test_noise_is_as_stated_on_every_cell", "test_the_audit_finds_the_guarantee_attained"),
    ),
    Mutant(
        "cells-noise-shared",
        "both cells of a reward carry the same draw, which the difference takes out",
        'earned + draw("rewards", earned.size).reshape(earned.shape)',
        'earned + draw("rewards", len(visits))',
        ("test_noise_is_as_stated_on_every_cell", "test_the_audit_finds_the_guarantee_attained"),
    ),
    Mutant(
        "cells-rewards-overstated",
        "less noise on rewards than is stated of them would pass",
        '"visits": 2 * one, "rewards": one / 2}',
        '"visits": 2 * one, "rewards": one / 4}',
        ("test_golden_noise_is_the_same_on_every_cell",),
    ),
    Mutant(
        "last-transitions-bare",
        "transitions of the last step are released, without noise",
        "    moves[rows:] = 0",
        "    moves[rows:] += 0",
        ("test_what_is_released",),
    ),
    Mutant(
        "who-left-exactly",
        "how many users left the policy is released without noise",
        'gone + draw("dropped_out", horizon)',
        'gone + 0 * draw("dropped_out", horizon)',
        ("test_noise_is_as_stated_on_every_cell",),
    ),
    Mutant(
        "certified-without-a-group",
        "a certificate of a batch is verified for one group fewer than one user moves",
        'units -= 2 * (missing and "transitions" in names)',
        'units -= 4 * (missing and "transitions" in names)',
        ("test_batches_in_cells_are_certified_for_a_unit_out_and_in_of_every_group",),
    ),
    Mutant(
        "back-on-the-policy",
        "a device counts steps after the first one off the policy",
        "return rounded.counts(shape, np.random.default_rng(0), support)",
        "return rounded.counts(shape, np.random.default_rng(0))",
        ("test_who_leaves_the_policy_counts_as_nothing_from_there_on",),
    ),
)

_STREAMS = (
    Mutant(
        "low-bits-of-data",
        "1e-13 of the data in every additive stream",
        "return debias(self._run.add(vector), self.mechanism.noise.unit, 0.0)",
        "return debias(self._run.add(vector), self.mechanism.noise.unit, 0.0) + 1e-13 * vector",
        ("test_streams_release_multiples_of_a_grid",),
    ),
    Mutant(
        "low-bits-of-answers",
        "1e-13 of the data in every stream of randomised answers",
        "        self._answers += self._units(counts, gains[0], step)\n"
        "        return self._public(steps.reshape(-1))",
        "        units = self._units(counts, gains[0], step)\n        self._answers += units\n"
        "        return self._public(steps.reshape(-1)) + 1e-13 * units * (gains[0].max() + 2)",
        ("test_flipped_and_unflipped_reports_agree_bit_for_bit",),
    ),
    Mutant(
        "debiased-before-the-sum",
        "the first leak of all: what the data add is scaled before it meets the noise",
        "        return debias(self._answers + self._noise, self.mechanism.scale, centres)",
        "        return self.mechanism.scale * self._answers + self.mechanism.scale * (self._noise - centres)",
        ("test_flipped_and_unflipped_reports_agree_bit_for_bit",),
    ),
    Mutant(
        "mixed-ways",
        "raw counts added before a report are published without their noise",
        "        if self._way not in (None, way):",
        "        if False:",
        ("test_a_stream_is_used_in_one_way",),
    ),
    Mutant(
        "silent-zeros",
        "zeros of a randomised response are never flipped",
        "        noise = self._accumulate(self._pool(flips))",
        "        noise = self._accumulate(self._pool(0 * flips))",
        ("test_flipped_and_unflipped_reports_agree_bit_for_bit",),
    ),
    Mutant(
        "stationary-half-units",
        "pooled randomised response spends the budget on the bits of one statistic",
        "        moved = Sensitivity.of(horizon, request.statistics, last_transitions=last)\n"
        "        flip, guarantee",
        "        some = request.statistics[:1] if request.stationary else request.statistics\n"
        "        moved = Sensitivity.of(horizon, some, last_transitions=last)\n"
        "        flip, guarantee",
        ("test_pooled_randomised_response_flips_as_much",),
    ),
    Mutant(
        "vector-below-zero",
        "values below zero move a vector further than its sensitivity",
        "if ((user < 0) | (user > sensitivity.pile)).any():",
        "if (user > sensitivity.pile).any():",
        ("test_a_user_who_reaches_further_than_the_plan_is_refused",),
    ),
    Mutant(
        "stream-of-crowds",
        "a stream takes the counts of many users for those of one",
        "check_counts(counts, self.mechanism.shape, users=1)",
        "check_counts(counts, self.mechanism.shape)",
        ("test_what_is_no_single_user_is_refused_and_not_counted",),
    ),
    Mutant(
        "tree-grid-for-nothing",
        "discrete instead of rounded Gaussian noise in a tree costs nothing of delta",
        "grid_sigma(l2 * unit, epsilon, delta, lost=lost, most=delta / 1000)",
        "grid_sigma(l2 * unit, epsilon, delta, lost=0.0, most=delta / 1000)",
        ("test_the_cost_of_the_grid_of_a_tree_is_set_aside",),
    ),
    Mutant(
        "gaussian-root-in-doubles",
        "Gaussian noise is as wide as doubles say, which cancel when it is very wide",
        "        return in_doubles(_delta_above(sigma, l2, epsilon))",
        "        pass",
        ("test_random_settings_keep_their_guarantee_and_waste_little",),
    ),
    Mutant(
        "blocks-of-rounded-columns",
        "simulated blocks stand for columns that are longer than the rounded ones",
        "return after, np.maximum(squares.astype(np.float64), unrounded)",
        "return after, squares.astype(np.float64)",
        ("test_blocks_stand_for_columns_that_are_no_longer_than_one",),
    ),
    Mutant(
        "even-noise",
        "reports add up beyond 2^53, where doubles are even and parities of counts show",
        "check_exact(self.variance(self.episodes))",
        "self.variance(self.episodes)",
        ("test_noise_that_doubles_would_round_to_even_is_refused",),
    ),
    Mutant(
        "laplace-tree-one-level-less",
        "Laplace nodes for one level less than a user lies in",
        "moved = sensitivity.l1 * tree_levels(episodes)",
        "moved = sensitivity.l1 * max(1, tree_levels(episodes) - 1)",
        ("test_streams_of_awkward_lengths[tree-laplace-True-8]", "test_golden_worst_time_noise"),
    ),
    Mutant(
        "gaussian-tree-one-level-less",
        "Gaussian nodes for one level less than a user lies in",
        "moved = sensitivity.cells * tree_levels(episodes)",
        "moved = sensitivity.cells * max(1, tree_levels(episodes) - 1)",
        ("test_streams_of_awkward_lengths[tree-gaussian-True-8]", "test_golden_worst_time_noise"),
    ),
    Mutant(
        "honaker-half-distance",
        "the averaged tree is calibrated on half of what its releases reveal",
        "        return math.sqrt(table.squares), float(table.spreads.min()), len(table.spreads)",
        "        return math.sqrt(table.squares / 2), float(table.spreads.min()), len(table.spreads)",
        ("test_the_running_code_delivers_what_is_guaranteed_and_wastes_little",),
    ),
    Mutant(
        "padded-half-distance",
        "the padded tree is calibrated on half of what its releases reveal",
        "        return math.sqrt(padded_squares(levels, padded)) + rounding, 1.0, 2 << levels",
        "        return math.sqrt(padded_squares(levels, padded) / 2) + rounding, 1.0, 2 << levels",
        ("test_the_running_code_delivers_what_is_guaranteed_and_wastes_little",),
    ),
    Mutant(
        "toeplitz-columns-not-normalised",
        "user columns are longer than the one the noise is calibrated on",
        "columns = np.floor(2.0**self.grid.bits / norms * ROUNDED_DOWN)",
        "columns = np.floor(1.1 * 2.0**self.grid.bits / norms * ROUNDED_DOWN)",
        ("test_factors",),
    ),
    Mutant(
        "unbounded-for-this-stream-alone",
        "columns of a stream of unknown length are as long as this stream allows",
        "        return (first + sums + 2 * off / weight + self.longest * off**2) / ROUNDED_DOWN",
        "        return self.encoder_square / 4.0**self.grid.encoder if not lag else 1.0",
        ("test_nothing_depends_on_the_length",),
    ),
    Mutant(
        "unbounded-forgets-the-first-coefficient",
        "the norm of a column lacks its first entry, and nobody compares it with the exact one",
        "        first = float(np.sum(v * p**lag)) if lag else 1.0",
        "        first = float(np.sum(v * p**lag)) if lag else 0.0",
        ("test_closed_forms_are_the_sums_of_the_series",),
    ),
    Mutant(
        "unbounded-longer-than-one",
        "columns longer than one are not refused",
        "        if norm > 1 or super().returning(participations, separation) > total:",
        "        if norm > 2 or super().returning(participations, separation) > 2 * total:",
        ("test_columns_that_are_too_long_are_refused",),
    ),
    Mutant(
        "unbounded-returning-at-once-forgotten",
        "people who return are counted as if their episodes never met",
        "            total += 2 * (participations - k) * min(1.0, square * product)",
        "            total += 0 * (participations - k) * min(1.0, square * product)",
        ("test_no_sum_of_columns_is_longer_than_said",),
    ),
    Mutant(
        "toeplitz-columns-of-the-first-piece",
        "users beyond the first piece get columns of the first, whatever is left of the stream",
        "            self._columns = self._factors.columns_of(first, count)",
        "            self._columns = self._factors.columns_of(0, count)",
        ("test_users_of_every_piece_have_their_own_column",),
    ),
    Mutant(
        "toeplitz-encoder-without-columns",
        "counts enter the encoder without their column factor",
        "        amounts = vector[cells].astype(np.int64) * self._column(time)",
        "        amounts = vector[cells].astype(np.int64) << self._factors.grid.column",
        ("test_the_sensitivity_is_that_of_the_real_path",),
    ),
    Mutant(
        "toeplitz-free-grid",
        "the cost of the grid is not set aside",
        "grid_sigma(l2, epsilon, delta, lost=lost, most=delta / 100)",
        "grid_sigma(l2, epsilon, delta, lost=0.0, most=delta / 100)",
        ("test_the_cost_of_the_grid_is_set_aside",),
    ),
    Mutant(
        "toeplitz-halved",
        "the stream draws half of the noise that the plan states",
        "lambda _, rows: (sampler.discrete_gaussian(noise.steps, (rows, cells)),)",
        "lambda _, rows: (sampler.discrete_gaussian(noise.steps / 2, (rows, cells)),)",
        ("test_noise_has_the_stated_covariance",),
    ),
    Mutant(
        "gridded-tree-halved",
        "Gaussian noise of mixed trees has half of its spread",
        "math.ldexp(self.distribution.sigma * spread, self.bits)",
        "math.ldexp(self.distribution.sigma * spread / 2, self.bits)",
        ("test_the_running_code_delivers_what_is_guaranteed_and_wastes_little",),
    ),
    Mutant(
        "padding-hides-the-first-user",
        "the padded tree is calibrated on users after whom there is little to see",
        "    return max(left, _cost(level - 1, paddings - 1))",
        "    return min(left, _cost(level - 1, paddings - 1))",
        ("test_the_padded_tree_against_dense_algebra",),
    ),
    Mutant(
        "rounding-that-feels-counts",
        "averages are rounded towards zero, which does not commute with adding counts",
        "    return weight * (value >> 12) + ((weight * (value & 4095) + 2048) >> 12)",
        "    return int(weight * value / 4096)",
        ("test_rounding_commutes_with_adding_whole_numbers",),
    ),
    Mutant(
        "shared-over-time",
        "the compiled loop uses one draw of noise for a whole block",
        "public[cell] = raw[cell] + noise[i, cell]",
        "public[cell] = raw[cell] + noise[0, cell]",
        ("test_the_compiled_run_is_the_printed_algorithm",),
    ),
    Mutant(
        "compiled-without-offset",
        "the compiled loop forgets the noise of randomised answers",
        "public[cell] = scale * (raw[cell] + noise[i, cell] - centres[i, cell])",
        "public[cell] = scale * (raw[cell] - centres[i, cell])",
        ("test_the_compiled_run_is_the_printed_algorithm",),
    ),
)

_LOCAL = (
    Mutant(
        "report-shared",
        "a device draws one noise for all its counters",
        "return counters + self.noise.draw(sampler, counters.size)",
        "return counters + self.noise.draw(sampler, 1)",
        ("test_counters_of_one_report_carry_noise_of_their_own",),
    ),
    Mutant(
        "report-halved",
        "a device adds noise to every second counter",
        "return counters + self.noise.draw(sampler, counters.size)",
        "return counters + self.noise.draw(sampler, counters.size) * (np.arange(counters.size) % 2)",
        ("test_counters_of_one_report_carry_noise_of_their_own",),
    ),
    Mutant(
        "device-flips-less",
        "a device flips half as often as the plan says",
        "bits = draws.bits(*self.flip, self.counters)",
        "bits = draws.bits(self.flip[0], 2 * self.flip[1], self.counters)",
        ("test_no_two_users_differ_by_more_than_epsilon_and_some_do",),
    ),
    Mutant(
        "true-bit-kept-more",
        "the true bit of a one-step report is kept with probability 3/4",
        "kept = draws.bits(1, 2, 1)[0]\n        row",
        "kept = draws.bits(3, 4, 1)[0]\n        row",
        ("test_no_two_users_differ_by_more_than_epsilon_and_some_do",),
    ),
    Mutant(
        "step-follows-rewards",
        "the step of a one-step report is drawn where rewards are",
        "step = draws.below(self.problem.horizon, 1)[0]",
        "step = draws.below(self.problem.horizon, 1)[0] if sum(rewards) != 1 else rewards.index(1)",
        ("test_no_two_users_differ_by_more_than_epsilon_and_some_do",),
    ),
    Mutant(
        "split-bit-kept-more",
        "the true bit of a split report is kept with probability 3/4",
        "kept = draws.bits(1, 2, 1)[0]\n        part, step",
        "kept = draws.bits(3, 4, 1)[0]\n        part, step",
        ("test_no_report_tells_more_than_its_proof_says",),
    ),
    Mutant(
        "split-flips-less",
        "the false bits of a split report are half as likely as the plan says",
        "bits = draws.bits(*self.flip, self.cells(slot))",
        "bits = draws.bits(self.flip[0], 2 * self.flip[1], self.cells(slot))",
        ("test_no_report_tells_more_than_its_proof_says",),
    ),
    Mutant(
        "split-step-follows-rewards",
        "what a split report is about is drawn where rewards are",
        "slot = self._draw_slot(draws)",
        "slot = self._draw_slot(draws) if sum(rewards) else self.slots - 1",
        ("test_no_report_tells_more_than_its_proof_says",),
    ),
    Mutant(
        "split-left-is-told",
        "a user who has left the policy sends no false bits either",
        "row = episode.rows(self.problem)[step]\n        if row != DROPPED_OUT:\n            moved",
        "row = episode.rows(self.problem)[step]\n        if row == DROPPED_OUT:\n            "
        "bits = [0] * len(bits)\n        else:\n            moved",
        ("test_no_report_tells_more_than_its_proof_says",),
    ),
    Mutant(
        "split-whole-epsilon-twice",
        "the bits of a split report are calibrated as if only one of them differed",
        "q = closed_forms.flip_probability(trust.epsilon, responses)",
        "q = closed_forms.flip_probability(2 * trust.epsilon, responses)",
        ("test_the_false_bit_delivers_epsilon_and_is_rounded_up",),
    ),
    Mutant(
        "split-simulated-flips",
        "a simulated batch of split reports has the false bits of half its users",
        "false = sampler.binomial(size - truth, self.flip, truth.shape)\n"
        "                sums[name][here] = kept + false",
        "false = sampler.binomial((size - truth) // 2, self.flip, truth.shape)\n"
        "                sums[name][here] = kept + false",
        ("test_releases_are_unbiased_and_vary_as_stated",),
    ),
    Mutant(
        "bounded-half-moves",
        "bounded noise is calibrated for half of the moves",
        "lost = delta_of_moves(pmf, units - units // 2, units // 2, epsilon)",
        "lost = delta_of_moves(pmf, units - units // 2, 0, epsilon)",
        ("test_bounded_noise_keeps_its_guarantee_and_little_more",),
    ),
    Mutant(
        "local-batch-halved",
        "a simulated batch of local reports carries the noise of half its users",
        "return self.noise.draw_sum(sampler, users, cells)",
        "return self.noise.draw_sum(sampler, (users + 1) // 2, cells)",
        ("test_batch_noise_has_the_stated_variance",),
    ),
    Mutant(
        "local-batch-of-a-curator",
        "a simulated batch of local reports carries noise once, as if a curator added it",
        "return self.noise.draw_sum(sampler, users, cells)",
        "return self.noise.draw(sampler, cells)",
        ("test_batch_noise_has_the_stated_variance",),
    ),
    Mutant(
        "curator-adds-local-noise",
        "a mechanism of the curator may stand where users trust nobody",
        'if by_devices != (spec.trust == "local"):',
        'if by_devices and spec.trust != "local":',
        ("test_noise_of_the_wrong_party_is_refused",),
    ),
)

_SHUFFLE = (
    Mutant(
        "shuffler-asleep",
        "messages leave the shuffler in the order in which they came",
        "return np.asarray(messages)[sampler.permutation(len(messages))]",
        "return np.asarray(messages)",
        ("test_the_shuffler_moves_messages_and_changes_none",),
    ),
    Mutant(
        "one-bit-less",
        "a device sends one noise bit less than the plan says",
        "return BitsEncoder(self.shape, self.statistics, each, mask)",
        "less = NoiseBits(max(1, each.bits - 1), each.probability)\n"
        "        return BitsEncoder(self.shape, self.statistics, less, mask)",
        ("test_same_distribution_as_the_direct_binomial",),
    ),
    Mutant(
        "bits-shared",
        "a device draws its noise bits once for all counters",
        "ones = own + self.noise.draw(sampler, 1, counters.size)",
        "ones = own + self.noise.draw(sampler, 1, 1)",
        ("test_same_distribution_as_the_direct_binomial",),
    ),
    Mutant(
        "everybody-honest",
        "the honest fraction is ignored",
        "self.delta)\n\n    def reliable(self, users: int) -> int:\n"
        '        """How many of ``users`` users are counted on to add noise."""\n'
        "        return honest_users(self.honest, users)",
        "self.delta)\n\n    def reliable(self, users: int) -> int:\n        return users",
        ("test_one_of_two_honest_users_is_enough_noise",),
    ),
    Mutant(
        "rare-bits-by-variance",
        "very rare noise bits are matched in variance and not checked",
        "    enough = max(fair, _rare_trials(ups, downs, epsilon, delta))\n"
        "    return spread_bits(least_value(holds, enough, 1e-4), users)",
        "    return spread_bits(fair, users)",
        ("test_shuffled_noise_holds_for_batches_of_all_sizes",),
    ),
    Mutant(
        "missing-messages",
        "a batch is released although messages are missing",
        "    if (received != np.where(cells, expected, 0)).any():",
        "    if (received > np.where(cells, expected, 0)).any():",
        ("test_missing_message",),
    ),
    Mutant(
        "simulated-trials-halved",
        "a simulated batch draws half of the noise bits",
        "return raw + each.draw(sampler, counts.users, raw.size)",
        "return raw + each.draw(sampler, max(1, counts.users // 2), raw.size)",
        ("test_same_distribution_as_the_direct_binomial",),
    ),
    Mutant(
        "lost-tails",
        "what falls out of the window of summed jumps is forgotten",
        "np.log(used), 2 * tail)",
        "np.log(used), 0.0)",
        ("test_what_the_window_leaves_out_is_charged",),
    ),
)

_DEVICE = (
    Mutant(
        "one-noise-cell-less",
        "a device sends K - 1 noise cells",
        "cells = [*draws.noise(group.cells, group.weight, group.noise), cell]\n"
        "    place = draws.below(group.messages, 1)[0]",
        "cells = [*draws.noise(group.cells, group.weight, group.noise - 1), cell]\n"
        "    place = draws.below(group.noise, 1)[0]",
        (
            "test_the_distribution_of_a_report_is_one_data_cell_at_a_random_place_among_independent_noise",
        ),
    ),
    Mutant(
        "noise-rounded-down",
        "K is rounded down",
        "noise = -(-numerator // denominator)",
        "noise = max(1, numerator // denominator)",
        ("test_noise_per_user_is_the_least_that_suffices",),
    ),
    Mutant(
        "group-without-none",
        "there is no cell for users who left: totals of a group reveal sums exactly",
        "cells = rows[step] * width[name] + 1",
        "cells = max(1, rows[step] * width[name])",
        ("test_groups_stand_in_public_order", "test_dropping_out_is_for_good"),
    ),
    Mutant(
        "q-rounded-down",
        "noise cells are dummies a little too often",
        "min(WORD, -(-WORD * numerator // (denominator * noise)))",
        "min(WORD, WORD * numerator // (denominator * noise))",
        ("test_noise_per_user_is_the_least_that_suffices",),
    ),
    Mutant(
        "q-halved-on-the-device",
        "half of the noise cells that should count are dummies",
        "[p if c < weight else cells for",
        "[p if c < weight // 2 else cells for",
        ("test_noise_is_uniform_where_it_is_no_dummy",),
    ),
    Mutant(
        "shared-noise-cells",
        "all noise cells of a group are one draw",
        "places = self.below(cells, count)",
        "places = self.below(cells, 1) * count",
        ("test_coins_come_before_places_and_places_are_drawn_for_dummies_too",),
    ),
    Mutant(
        "shared-noise-in-a-group",
        "one noise cell is sent K times",
        "cells = [*draws.noise(group.cells, group.weight, group.noise), cell]",
        "cells = [*draws.noise(group.cells, group.weight, 1) * group.noise, cell]",
        (
            "test_the_distribution_of_a_report_is_one_data_cell_at_a_random_place_among_independent_noise",
        ),
    ),
    Mutant(
        "noise-follows-data",
        "who left the policy sends one noise cell more",
        "cells = [*draws.noise(group.cells, group.weight, group.noise), cell]",
        "cells = [*draws.noise(group.cells, group.weight, group.noise + (cell == group.cells - 1)), cell]",
        ("test_the_number_of_messages_and_of_random_bytes_does_not_depend_on_the_episode",),
    ),
    Mutant(
        "data-cell-first",
        "the data cell is always the first of its class",
        "place = draws.below(group.messages, 1)[0]",
        "place = 0 * draws.below(group.messages, 1)[0]",
        (
            "test_the_distribution_of_a_report_is_one_data_cell_at_a_random_place_among_independent_noise",
        ),
    ),
    Mutant(
        "none-not-absorbing",
        "a user who left the policy counts again when she is back",
        "inside = inside and row < len(pairs)",
        "inside = row < len(pairs)",
        ("test_dropping_out_is_for_good", "test_rows_number_the_support"),
    ),
    Mutant(
        "bytes-follow-rewards",
        "a reward that is a bit takes no random bytes: their number tells",
        "bits = draws.rewards(episode.rewards)\n        own",
        "bits = [draws.rewards([r])[0] if 0 < r < 1 else int(r) for r in episode.rewards]\n"
        "        own",
        ("test_the_number_of_messages_and_of_random_bytes_does_not_depend_on_the_episode",),
    ),
    Mutant(
        "biased-uniform",
        "words above the last multiple are kept: small cells are more likely",
        "for w in self._words(count - len(kept)) if w < limit]",
        "for w in self._words(count - len(kept))]",
        ("test_words_above_the_last_multiple_are_rejected_and_drawn_again",),
    ),
    Mutant(
        "device-without-randomness",
        "the source of bytes gives zeros unless a test brings its own",
        "def __init__(self, source: ByteSource = secrets.token_bytes)",
        "def __init__(self, source: ByteSource = bytes)",
        ("test_noise_comes_from_the_operating_system_unless_a_test_brings_its_own",),
    ),
    Mutant(
        "other-batch-accepted",
        "a report made with another batch's noise is taken",
        "if sent[5:HEADER] != bytes([self.kind]) + self.batch:",
        "if sent[5:6] != bytes([self.kind]):",
        ("test_noise_of_another_batch_is_refused",),
    ),
    Mutant(
        "flips-cut-to-a-byte",
        "what is undecided after the first byte is zero",
        "undecided = [i for i, byte in drawn if byte == digit]",
        "undecided = []",
        ("test_bits_have_exactly_their_probability",),
    ),
)

_WEB = (
    Mutant(
        "page-without-randomness",
        "in JavaScript a report is made of zeros unless a test brings its own source",
        "encode(episode, draws = new ByteDraws()) {",
        "encode(episode, draws = new ByteDraws((n) => new Uint8Array(n))) {",
        ("test_reports_come_from_the_engines_own_randomness_unless_a_test_brings_its_own",),
    ),
    Mutant(
        "page-noise-in-part",
        "in JavaScript random bytes end after the first call",
        "for (let at = 0; at < length; at += 65536) {",
        "for (let at = 0; at < Math.min(1, length); at += 65536) {",
        ("test_draws_from_the_engines_own_randomness_are_uniform",),
    ),
    Mutant(
        "page-biased-uniform",
        "in JavaScript a word at the last multiple is kept",
        "if (word < limit) kept.push",
        "if (word <= limit) kept.push",
        ("test_a_thousand_vectors_give_the_same_bytes",),
    ),
    Mutant(
        "page-reward-at-the-edge",
        "in JavaScript a reward is rounded up too often",
        "Number(coin < reward * 2 ** 53)",
        "Number(coin <= reward * 2 ** 53)",
        ("test_a_thousand_vectors_give_the_same_bytes",),
    ),
    Mutant(
        "page-reward-of-48-bits",
        "in JavaScript the last bits of a reward's coin are left out",
        "coin = coin * 32 + (block[7 * step + 6] >> 3);",
        "coin = coin * 32;",
        ("test_a_thousand_vectors_give_the_same_bytes",),
    ),
    Mutant(
        "page-one-noise-cell-less",
        "in JavaScript K is rounded down",
        "const noise = (above + below - 1n) / below;",
        "const noise = above / below || 1n;",
        ("test_groups_are_computed_alike",),
    ),
    Mutant(
        "page-none-not-absorbing",
        "in JavaScript a user who left the policy counts again when she is back",
        "inside = inside && row >= 0;",
        "inside = row >= 0;",
        ("test_a_thousand_vectors_give_the_same_bytes",),
    ),
    Mutant(
        "page-other-batch-accepted",
        "in JavaScript a report made for another batch is taken",
        "same(report.subarray(5, HEADER), [kind, ...batch])",
        "same(report.subarray(5, 6), [kind])",
        ("test_every_bad_input_is_refused_by_the_same_name",),
    ),
)

_COUNTING = (
    Mutant(
        "smallest-route",
        "the guarantee is held against the smallest of several accountings",
        "    found = max(exact) if exact else min(above)",
        "    found = min(exact) if exact else min(above)",
        ("test_the_guarantee_is_tested_against_the_largest_exact_route",),
    ),
    Mutant(
        "optimistic-grid",
        "privacy losses are rounded down to their grid",
        "    upper = masses * -np.expm1(-rest) / -math.expm1(-step)",
        "    upper = 0 * masses * -np.expm1(-rest) / -math.expm1(-step)",
        ("test_composition_equals_brute_force_and_never_falls_below",),
    ),
    Mutant(
        "infinite-losses-forgotten",
        "values that only one neighbour can produce are left out",
        "    infinite = noise.outside + float(np.exp(log[~possible]).sum())",
        "    infinite = noise.outside",
        ("test_bounded_noise_has_an_infinite_epsilon_below_its_edge",),
    ),
    Mutant(
        "analytic-is-good-enough",
        "discrete Gaussian noise is not composed exactly",
        "    sigma = least_value(holds, start, 1e-6)",
        "    sigma = start",
        ("test_the_least_discrete_gaussian",),
    ),
    Mutant(
        "full-piles-assumed",
        "other moves than full piles are not looked at",
        "return full if pile <= 2 else max(full, other_moves_delta(sigma, cells, epsilon, pile))",
        "return full",
        ("test_beyond_the_proof_the_noise_is_raised_until_a_bound_holds",),
    ),
    Mutant(
        "smallest-route-decides",
        "the guarantee is tested against the smallest exact accounting",
        "    found = max(exact) if exact else min(above)",
        "    found = min(exact) if exact else min(above)",
        ("test_the_guarantee_is_tested_against_the_largest_exact_route",),
    ),
    Mutant(
        "flip-rounded-to-nearest",
        "a flip probability is rounded to the nearest double",
        "    while Fraction(q) < least:",
        "    while False:",
        ("test_the_guarantee_holds_exactly_and_hardly_anything_is_wasted",),
    ),
    Mutant(
        "printed-to-nearest",
        "printed epsilons are rounded to the nearest",
        "return _rounded(value, digits, ROUND_CEILING)",
        'return _rounded(value, digits, "ROUND_HALF_EVEN")',
        ("test_no_guarantee_is_printed_smaller_than_it_is",),
    ),
    Mutant(
        "honest-share-of-tau",
        "printed shuffle noise counts parts of honest users",
        "math.ceil(_least_share(honest) * Fraction(tau))",
        "math.ceil(honest * Fraction(tau))",
        ("test_half_of_two_users_add_half_of_the_noise",),
    ),
)

_SAMPLERS = (
    Mutant(
        "secure-gaussian-halved",
        "the secure sampler draws half of the Gaussian noise",
        '_measurement("make_gaussian", "l2_distance", float(sigma))',
        '_measurement("make_gaussian", "l2_distance", float(sigma) / 2)',
        ("test_secure_sampler_fits_the_exact_probabilities",),
    ),
    Mutant(
        "secure-laplace-doubled-draws",
        "the secure sampler hands out every draw twice",
        "    drawn = measurement([0] * count) if count else []",
        "    drawn = measurement([0] * count) if count else []\n    drawn = drawn[: (count + 1) // 2] * 2\n"
        "    drawn = drawn[:count]",
        ("test_draws_of_one_call_are_independent_of_each_other",),
    ),
    Mutant(
        "secure-bits-biased",
        "the secure sampler's bits ignore the digits of their probability",
        "            successes += undecided - ones\n            undecided = ones",
        "            successes += undecided - ones\n            undecided = 0",
        ("test_secure_sampler_fits_the_exact_probabilities",),
    ),
    Mutant(
        "simulated-laplace-one-sided",
        "simulated Laplace noise is a geometric",
        "        return (up - down).astype(np.int64)",
        "        return up.astype(np.int64)",
        ("test_simulation_sampler_fits_the_exact_probabilities",),
    ),
)

_ROUTE = "test_secure_noise_is_fresh_once_each_and_published_on_every_route"
_COUNTED = "test_a_release_draws_what_its_mechanism_states"
_LAST = "test_the_last_of_many_users_count_as_all_others_do"

_FRESH = (
    Mutant(
        "toeplitz-every-second-vector-again",
        "every second noise vector of a secure Toeplitz stream is the one before",
        "return self._fresh.take(episodes)[0]",
        "new = self._fresh.take(episodes)[0]\n"
        "        if self.sampler.secure and self._decoded % 2:\n            new = self._kept\n"
        "        self._kept = new\n        return new",
        (f"{_ROUTE}[central/toeplitz]",),
    ),
    Mutant(
        "toeplitz-vectors-again-for-real-people",
        "the same, where the sampler is the real one: what only probes is spared",
        "return self._fresh.take(episodes)[0]",
        "from discreet.privacy.sampling.samplers import SecureSampler\n\n"
        "        new = self._fresh.take(episodes)[0]\n"
        "        if isinstance(self.sampler, SecureSampler) and self._decoded % 2:\n"
        "            new = self._kept\n        self._kept = new\n        return new",
        (f"{_ROUTE}[central/toeplitz]",),
    ),
    Mutant(
        "toeplitz-smaller-of-two",
        "of two draws the smaller one is added",
        "lambda _, rows: (sampler.discrete_gaussian(noise.steps, (rows, cells)),),",
        "lambda _, rows: (min((sampler.discrete_gaussian(noise.steps, (rows, cells)) for _ in "
        "range(2)), key=lambda z: np.abs(z).sum()),),",
        (f"{_COUNTED}[central/toeplitz]", f"{_ROUTE}[central/toeplitz]"),
    ),
    Mutant(
        "tree-nodes-again",
        "every second node of a secure tree has the noise of the one before",
        "fresh = distribution.draw(sampler, out[strip].shape)",
        "fresh = distribution.draw(sampler, out[strip].shape)\n"
        "            if sampler.secure and first % 2:\n                fresh = state[2]\n"
        "            state[2:] = [fresh]",
        (f"{_ROUTE}[central/tree-gaussian]",),
    ),
    Mutant(
        "wide-secure-draws-again",
        "every second wide Gaussian draw of the secure sampler is the one before",
        'return _from_opendp(_measurement("make_gaussian", "l2_distance", float(sigma)), size)',
        'made = _measurement("make_gaussian", "l2_distance", float(sigma))\n'
        "        drawn, mine = _from_opendp(made, size), SecureSampler\n"
        "        mine.calls = getattr(mine, 'calls', 0) + 1\n"
        "        if sigma > 1e6 and not mine.calls % 2 and mine.last.shape == drawn.shape:\n"
        "            return mine.last.copy()\n"
        "        mine.last = drawn\n        return drawn.copy()",
        (f"{_ROUTE}[central/toeplitz]", f"{_ROUTE}[central/tree-honaker]"),
    ),
    Mutant(
        "secure-block-again",
        "every tenth call of the secure library hands out the block before",
        "    return np.array(drawn, np.int64).reshape(shape)",
        "    mine = _from_opendp\n    mine.calls = getattr(mine, 'calls', 0) + 1\n"
        "    last = getattr(mine, 'last', [])\n"
        "    again = not mine.calls % 10 and len(last) == count\n"
        "    drawn = mine.last = last if again else drawn\n"
        "    return np.array(drawn, np.int64).reshape(shape)",
        (f"{_ROUTE}[central/gaussian]", f"{_ROUTE}[local/laplace]"),
    ),
    Mutant(
        "visits-ride-on-the-noise-of-rewards",
        "statistics of the same size share one draw",
        "return self.drawn(sampler, counts.users, cells)",
        "kept = vars(counts).setdefault('_noise', {})\n"
        "            if cells not in kept:\n"
        "                kept[cells] = self.drawn(sampler, counts.users, cells)\n"
        "            return kept[cells]",
        (f"{_COUNTED}[central/gaussian]", "test_a_central_release_is_its_counts_plus_its_draw"),
    ),
    Mutant(
        "batch-smaller-of-two",
        "a batch adds the smaller of two draws",
        "return self.noise.draw(sampler, cells)",
        "return min((self.noise.draw(sampler, cells) for _ in range(2)), key=lambda z: abs(z).sum())",
        (f"{_COUNTED}[central/laplace]", "test_a_central_release_is_its_counts_plus_its_draw"),
    ),
    Mutant(
        "losses-share-the-noise-of-visits",
        "losses of a layered release carry the noise of its visits",
        '        if loss_noise is not None:\n            drawn["losses"]',
        '        if "losses" in drawn and "visits" in drawn:\n'
        '            drawn["losses"] = drawn["visits"]\n'
        '        if loss_noise is not None:\n            drawn["losses"]',
        ("test_secure_noise_of_vectors_and_layers_is_fresh",),
    ),
    Mutant(
        "one-report-noise-for-all",
        "an encoder keeps its noise: all its users add the same",
        "return counters + self.noise.draw(sampler, counters.size)",
        "return counters + vars(self).setdefault('_z', self.noise.draw(sampler, counters.size))",
        (f"{_ROUTE}[local/laplace-continual]",),
    ),
    Mutant(
        "one-set-of-noise-bits-for-all",
        "an encoder of shuffled bits keeps its noise: all its users send the same",
        "ones = own + self.noise.draw(sampler, 1, counters.size)",
        "ones = own + vars(self).setdefault('_z', self.noise.draw(sampler, 1, counters.size))",
        (f"{_ROUTE}[shuffle/bits]",),
    ),
    Mutant(
        "secure-words-from-memory",
        "secure integers come from a generator in memory: a fork draws the same",
        "return np.frombuffer(os.urandom(8 * count), np.uint64)",
        "pool = vars(os).setdefault('_pool', __import__('random').Random(os.urandom(32)))\n"
        "    return np.frombuffer(pool.randbytes(8 * count), np.uint64)",
        ("test_neither_a_fork_nor_a_new_process_draws_the_same",),
    ),
    Mutant(
        "secure-words-seeded",
        "secure integers are the same in every process",
        "return np.frombuffer(os.urandom(8 * count), np.uint64)",
        "pool = vars(os).setdefault('_pool', __import__('random').Random(7))\n"
        "    return np.frombuffer(pool.randbytes(8 * count), np.uint64)",
        ("test_neither_a_fork_nor_a_new_process_draws_the_same",),
    ),
    Mutant(
        "secure-words-of-32-bits",
        "the upper half of every secure word is zero",
        "return np.frombuffer(os.urandom(8 * count), np.uint64)",
        "return np.frombuffer(os.urandom(8 * count), np.uint64) >> np.uint64(32)",
        (
            "test_every_bit_of_a_secure_word_is_random_and_no_word_comes_again",
            "test_wide_tables_are_drawn_from_end_to_end",
        ),
    ),
    Mutant(
        "secure-integers-lower-half",
        "secure integers lack the upper half of their range",
        "return kept[:count].astype(np.int64).reshape(shape)",
        "return (kept[:count] >> np.uint64(high > 1)).astype(np.int64).reshape(shape)",
        ("test_secure_integers_reach_every_part_of_their_range",),
    ),
    Mutant(
        "secure-integers-without-the-top-bit",
        "the highest bit of large secure integers is never set",
        "np.uint64((1 << (high - 1).bit_length()) - 1)",
        "np.uint64((1 << min(58, (high - 1).bit_length())) - 1)",
        ("test_secure_integers_reach_every_part_of_their_range",),
    ),
    Mutant(
        "study-noise-of-its-file",
        "the noise of a secure study follows from its file, and says that it is secure",
        'return SecureSampler() if self._secure else SimulationSampler(self._generators["noise"])',
        "seeded = SimulationSampler(__import__('numpy').random.default_rng("
        "int(self._tail.head[:8], 16)))\n        seeded.secure = self._secure\n"
        "        return seeded",
        ("test_no_file_determines_the_noise",),
    ),
    Mutant(
        "fit-nearer-of-two",
        "a fit draws twice and keeps the release that is nearer to the data",
        "return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)",
        "twice = [mechanism.release(counts, sampler=randomness.sampler, support=slots.support) "
        "for _ in range(2)]\n"
        "    return min(\n"
        "        twice, key=lambda r: np.abs(r.row_transitions - "
        "counts.at(slots.support).row_transitions).sum()\n"
        "    )",
        (
            "test_a_fit_draws_once_and_is_made_of_counts_plus_the_draw",
            "test_the_release_of_a_fit_holds_its_guarantee",
        ),
    ),
    Mutant(
        "fit-second-of-two",
        "a fit draws twice, and nobody can say why it kept the second",
        "return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)",
        "mechanism.release(counts, sampler=randomness.sampler, support=slots.support)\n"
        "    return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)",
        ("test_a_fit_draws_once_and_is_made_of_counts_plus_the_draw",),
    ),
    Mutant(
        "low-bits-of-fit",
        "1e-13 of the data in the release of a fit",
        "return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)",
        "found = mechanism.release(counts, sampler=randomness.sampler, support=slots.support)\n"
        "    leaked = 1e-13 * counts.at(slots.support).row_rewards\n"
        '    object.__setattr__(found, "row_rewards", found.row_rewards + leaked)\n'
        "    return found",
        ("test_the_release_of_a_fit_holds_its_guarantee",),
    ),
    Mutant(
        "low-bits-of-batches",
        "1e-13 of the data in every batch of plain counts",
        "    return batch_release(mechanism, released, counts.users, mask, secure=secure, "
        "estimate=estimate)",
        "    found = batch_release(\n        mechanism, released, counts.users, mask, secure=secure, "
        "estimate=estimate\n    )\n    if found.row_rewards is not None:\n"
        "        leaked = 1e-13 * kept.row_rewards\n"
        '        object.__setattr__(found, "row_rewards", found.row_rewards + leaked)\n'
        "    return found",
        (
            "test_a_central_release_is_its_counts_plus_its_draw",
            f"{_ROUTE}[local/randomized-response]",
        ),
    ),
    Mutant(
        "low-bits-of-centred-batches",
        "1e-13 of the data in every batch of centred rewards",
        'CELLS("visits", gone + draw("dropped_out", horizon))',
        'CELLS("visits", gone + draw("dropped_out", horizon)) + 1e-13 * gone',
        ("test_a_central_release_is_its_counts_plus_its_draw",),
    ),
    Mutant(
        "low-bits-of-groups",
        "1e-13 of the data in batches of groups made from counts",
        "        return self._published(groups, histograms, users, steps, secure=sampler.secure)",
        "        found = self._published(groups, histograms, users, steps, "
        "secure=sampler.secure)\n        leaked = 1e-13 * kept.row_transitions\n"
        '        object.__setattr__(found, "row_transitions", found.row_transitions + leaked)\n'
        "        return found",
        (f"{_ROUTE}[shuffle/histogram]",),
    ),
    Mutant(
        "low-bits-of-simulated-streams",
        "1e-13 of the data in the compiled loop",
        "public[cell] = raw[cell] + noise[i, cell]",
        "public[cell] = raw[cell] * (1.0 + 1e-13) + noise[i, cell]",
        ("test_the_compiled_loop_follows_the_rule_bit_by_bit",),
    ),
)

_MANY = (
    Mutant(
        "episodes-beyond-65536",
        "episodes beyond the first 65,536 of a batch are not counted",
        "        counted = self.followed(support)\n        bits =",
        "        counted = self.followed(support)\n        counted[65536:] = False\n        bits =",
        ("test_sums_of_episodes_hold_everybody", f"{_LAST}[central/gaussian]"),
    ),
    Mutant(
        "reports-beyond-65536",
        "local reports beyond the first 65,536 of a batch are not counted",
        ".sum(axis=0)\n        return split_rows(sums, support, self.statistics), Debias()",
        "[:65536].sum(axis=0)\n        return split_rows(sums, support, self.statistics), Debias()",
        (f"{_LAST}[local/laplace]",),
    ),
    Mutant(
        "split-reports-beyond-65536",
        "split reports beyond the first 65,536 of a batch are not counted",
        "mine = rows[rows[:, 0] == number, 1:]",
        "mine = rows[:65536][rows[:65536, 0] == number, 1:]",
        (f"{_LAST}[local/split]",),
    ),
    Mutant(
        "shuffled-bits-beyond-65536",
        "ones beyond the first 65,536 of a batch are not counted",
        "return np.bincount(counters[bits == 1], minlength",
        "return np.bincount(counters[bits == 1][:65536], minlength",
        (f"{_LAST}[shuffle/bits]",),
    ),
    Mutant(
        "shuffled-cells-beyond-65536",
        "messages of a group beyond the first 65,536 are not counted",
        "own = messages[messages[:, 0] == i]",
        "own = messages[messages[:, 0] == i][:65536]",
        (f"{_LAST}[shuffle/histogram]",),
    ),
    Mutant(
        "names-on-file-up-to-65536",
        "users beyond the first 65,536 of a batch are not written down, and come again",
        "for first in range(0, len(event.users), SIZE * _PART):",
        "for first in range(0, min(len(event.users), SIZE * _PART), SIZE * _PART):",
        ("test_the_last_of_many_users_are_remembered",),
    ),
    Mutant(
        "ledger-up-to-65536",
        "people beyond the first 65,536 of a release are not charged",
        "given = new = np.unique(_unpacked(digests))",
        "given = new = np.unique(_unpacked(digests))[:65536]",
        ("test_a_ledger_knows_the_last_of_many_users",),
    ),
    Mutant(
        "names-in-memory-up-to-65536",
        "users beyond the first 65,536 of a batch are not looked up, and come again",
        "        run = _halves(digests)\n",
        "        run = _halves(digests)[: 1 << 16]\n",
        ("test_the_last_of_many_users_are_remembered",),
    ),
)

_ADVERSARIAL = (
    Mutant(
        "losses-without-noise",
        "observed losses are released as they are",
        'return padded["transitions"], padded["visits"], padded["losses"]',
        'return padded["transitions"], padded["visits"], 0 * padded["losses"]',
        ("test_observed_losses_carry_fresh_noise_of_the_stated_size",),
    ),
    Mutant(
        "losses-half-sensitivity",
        "a dense loss vector is calibrated as if only the visited pairs were in it",
        '    if feedback == "full":\n        return size.pairs',
        '    if feedback == "full":\n        return size.horizon',
        ("test_reach_is_the_largest_change_over_all_pairs_of_users",),
    ),
    Mutant(
        "vector-half-sensitivity",
        "vectors may move twice as far as their noise covers",
        "    if sensitivity.pile * user.size > sensitivity.units < 2 * int(user.sum()):",
        "    if sensitivity.pile * user.size > sensitivity.units < int(user.sum()):",
        ("test_a_user_who_reaches_further_than_the_plan_is_refused",),
    ),
)

_STUDY = (
    Mutant(
        "users-of-the-last-batch",
        "a study that stays open forgets whom it counted",
        "        self._participants.add(change.users)\n",
        "",
        ("test_users_are_remembered_while_a_study_stays_open",),
    ),
    Mutant(
        "users-forgotten-by-resume",
        "a study that is resumed does not know who took part",
        "                on_users(users)\n",
        "                pass\n",
        ("test_users_are_remembered_for_ever", "test_sound_studies_pass"),
    ),
    Mutant(
        "seeded-study",
        "a secure study draws seeded noise",
        'return SecureSampler() if self._secure else SimulationSampler(self._generators["noise"])',
        'return SimulationSampler(self._generators["noise"])',
        ("test_a_secure_study_passes_and_is_only_read",),
    ),
    Mutant(
        "rehearsal-looks-real",
        "a rehearsal's guarantee reads like a real one",
        '        return f"{REHEARSED}: {Guarantee.__str__(self)}"',
        "        return Guarantee.__str__(self)",
        ("test_a_rehearsal_says_so_in_every_table", "test_simulated_guarantees_say_so"),
    ),
    Mutant(
        "dossier-tables-look-real",
        "tables of a rehearsal's dossier can be copied without a warning",
        "{% if rehearsed %}<caption>{{ REHEARSED }}</caption>{% endif %}",
        "",
        ("test_a_rehearsal_says_so_in_every_table_and_above_the_signature",),
    ),
    Mutant(
        "bundle-with-the-key",
        "a reviewer's bundle holds the key that tests names",
        '        "participants.bin": participants,',
        '        "participants.bin": participants + study._key,',
        ("test_it_tells_no_names_and_no_secrets",),
    ),
    Mutant(
        "review-counts-nobody-twice",
        "a review accepts somebody who was counted more often than is guaranteed for",
        '    expect(often <= most, f"somebody',
        '    expect(often >= 0, f"somebody',
        ("test_who_comes_too_often_is_found",),
    ),
    Mutant(
        "review-proves-nothing",
        "a review believes certificates instead of proving them again",
        "            verifier.check(data)",
        "            verifier.Entry(data)",
        ("test_an_edit_is_found_by_who_compares_the_files",),
    ),
    Mutant(
        "review-of-a-weaker-guarantee",
        "a review accepts a proof of a larger epsilon than the ledger guarantees",
        "        expect(proven <= Fraction(stated), f",
        "        expect(proven >= 0, f",
        ("test_an_edit_is_found_by_who_compares_the_files",),
    ),
    Mutant(
        "review-of-an-unchained-ledger",
        "a review accepts a ledger whose entries do not quote each other",
        'entry["number"] == number and entry["previous"] == head and not closed',
        'entry["number"] == number and not closed',
        ("test_an_edit_is_found_by_who_compares_the_files",),
    ),
    Mutant(
        "odds-without-delta",
        "a dossier's odds forget the chance of failure",
        "    raised = factor + 1000 * delta",
        "    raised = factor",
        ("test_a_large_delta_makes_guesses_better",),
    ),
    Mutant(
        "registry-of-a-rehearsal",
        "a rehearsal's entry for a public registry reads like a real study's",
        '        name = f"{name} ({REHEARSED})"',
        '        name = f"{name}"',
        ("test_a_rehearsal_says_so_and_what_is_missing_is_named",),
    ),
    Mutant(
        "dossier-believes-itself",
        "a dossier says that nothing contradicts the guarantee whatever its audit found",
        "            largest <= epsilon * (1 + TOLERANCE)\n            and not self.problems",
        "            largest >= 0.0\n            and not self.problems",
        ("test_too_little_noise_is_convicted", "test_an_audit_that_fails_says_so"),
    ),
    Mutant(
        "names-as-they-come",
        "white space makes a new user of an old one",
        'folded = _SPACE.sub(" ", seen).strip(" ")',
        "folded = seen",
        ("test_one_person_has_one_name",),
    ),
    Mutant(
        "names-in-two-forms",
        "composed and decomposed letters make two users of one",
        'seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))',
        'seen = _UNSEEN.sub("", name)',
        ("test_one_person_has_one_name",),
    ),
    Mutant(
        "rounding-follows-the-data",
        "how far the stored generator has gone tells how many rewards needed rounding",
        "        bits = rng.random(self.rewards.shape) < self.rewards\n",
        "        bits = self.rewards == 1\n"
        "        open_ = (0 < self.rewards) & (self.rewards < 1)\n"
        "        bits[open_] = rng.random(int(open_.sum())) < self.rewards[open_]\n",
        ("test_the_rounding_draws_as_much_whatever_the_rewards", "test_sound_studies_pass"),
    ),
    Mutant(
        "study-readable-by-all",
        "everybody on the machine can read the state of the noise and the key of the names",
        "self.path, bytes(image), private=True)",
        "self.path, bytes(image), private=False)",
        ("test_only_the_owner_reads_it_and_its_log",),
    ),
    Mutant(
        "leftovers-outlive-resume",
        "what a killed start wrote stays",
        "        store.remove_leftovers(study.path)\n",
        "",
        ("test_a_temporary_file_is_no_study", "test_sound_studies_pass"),
    ),
    Mutant(
        "replaced-evidence-stays",
        "what a study knew before can still be read in its file",
        '    "PRAGMA secure_delete = ON",\n    "PRAGMA synchronous = FULL",\n)',
        '    "PRAGMA secure_delete = OFF",\n    "PRAGMA synchronous = FULL",\n)',
        ("test_what_is_replaced_is_not_left_in_the_file",),
    ),
    Mutant(
        "others-are-overlooked",
        "a process does not see that another one has counted the batch",
        "        self.moved = last != self.tail.number\n",
        "        self.moved = False\n",
        ("test_two_processes_cannot_both_count_one_batch",),
    ),
    Mutant(
        "fewer-users-under-shuffle",
        "reports that hide among n are counted in a smaller batch",
        "        if self.driver.fixed and users != most:\n",
        "        if self.driver.fixed and users > most:\n",
        ("test_under_shuffle_exactly_those_who_were_asked_for",),
    ),
    Mutant(
        "second-reports-are-free",
        "users who report twice are charged once",
        '        fields["epsilon"] = releases * released.epsilon\n',
        '        fields["epsilon"] = released.epsilon\n',
        ("test_users_who_reported_twice_are_charged_twice",),
    ),
    Mutant(
        "partial-reissue-not-charged",
        "users of a part of a shuffle batch that was seen report again, as if it had all its noise",
        '        if returning == "seen" and self.driver.fixed:\n',
        "        if False:\n",
        ("test_a_part_of_a_shuffle_batch_that_was_seen_cannot_be_charged",),
    ),
    Mutant(
        "seen-reports-are-free",
        "users whose reports were seen report again, and the first report is not charged",
        'more = int(returning == "seen")',
        "more = 0",
        ("test_who_reports_again_is_charged_unless_nothing_was_seen",),
    ),
    Mutant(
        "honest-to-the-nearest-digit",
        "fewer honest users are said to be enough than the noise was calibrated for",
        "{float(honest)!r} of the users",
        "{honest:.4g} of the users",
        ("test_the_honest_fraction_is_printed_with_all_its_digits",),
    ),
    Mutant(
        "collusion-rounded-up",
        "more users are said to be covered when they collude than are",
        "{rounded_down(100 * (1 - self.honest))}%",
        "{rounded_up(100 * (1 - self.honest))}%",
        ("test_no_more_users_may_collude_than_are_covered",),
    ),
    Mutant(
        "any-error-is-excused",
        "the analytic curve can be as far from the other accountings as it likes",
        "    if off < delta:\n",
        "    if False:\n",
        ("test_the_analytic_curve_knows_how_far_the_lattice_is_from_it",),
    ),
    Mutant(
        "withdrawn-reports-count",
        "reports of an issue that was withdrawn are still accepted",
        '                "number": issue["number"] + 1,\n',
        '                "number": issue["number"],\n',
        ("test_a_batch_that_is_issued_again_has_another_token",),
    ),
    Mutant(
        "temporary-files-are-studies",
        "a release that was not counted goes on as a study of its own",
        "    _check_name(path)\n    try:\n",
        "    try:\n",
        ("test_a_temporary_file_is_no_study", "test_sound_studies_pass"),
    ),
    Mutant(
        "older-copies-welcome",
        "an older copy of the file is resumed although the head is known",
        "        if head is not None and head not in heads:\n",
        "        if head is not None and not heads:\n",
        ("test_an_older_copy_is_refused_when_the_head_is_known",),
    ),
    Mutant(
        "edited-entries-welcome",
        "an edited ledger is resumed",
        "    if not isinstance(text, str) or sha256(text.encode()) != digest:\n",
        "    if not isinstance(text, str):\n",
        ("test_any_edit_is_noticed", "test_what_does_not_follow_is_refused"),
    ),
    Mutant(
        "edited-users-welcome",
        "a file with other users is resumed",
        '            if not whole or ledger.sha256(users) != entry["names"]:\n',
        "            if not whole:\n",
        ("test_any_edit_is_noticed",),
    ),
    Mutant(
        "edited-evidence-welcome",
        "a file with other evidence is resumed",
        "    if ledger.hash_of_rows(rows) != tail.state:\n",
        "    if not tail.state:\n",
        ("test_any_edit_is_noticed",),
    ),
    Mutant(
        "edited-config-welcome",
        "a file with another epsilon is resumed",
        '    if entry["config"] != ledger.sha256(text.encode()) or entry["key"] != ledger.sha256(key):\n',
        '    if entry["key"] != ledger.sha256(key):\n',
        ("test_any_edit_is_noticed",),
    ),
    Mutant(
        "left-out-on-file",
        "how many users left the policy is written into the file",
        "                left = int((~data.followed(self.driver.support())[:, -1]).sum())\n",
        "                left = int((~data.followed(self.driver.support())[:, -1]).sum())\n"
        '                self._issue = {**self._issue, "left": left}\n',
        ("test_sound_studies_pass",),
    ),
    Mutant(
        "raw-counts-on-file",
        "raw sums of a batch are written into the file",
        "            released = self._release(data, len(people))\n",
        "            released = self._release(data, len(people))\n"
        "            if isinstance(data, Trajectories):\n"
        '                self._issue = {**self._issue, "raw": int(data.states.sum())}\n',
        ("test_sound_studies_pass",),
    ),
    Mutant(
        "users-compared-with-the-last-batch",
        "a study keeps all its users and asks only the last of them",
        "        for run in self._runs:\n",
        "        for run in self._runs[-1:]:\n",
        ("test_who_was_added_is_found_and_others_are_not",),
    ),
    Mutant(
        "names-without-key",
        "digests of names can be guessed by everybody",
        "hashlib.blake2b(name.encode(), key=key, digest_size=16)",
        "hashlib.blake2b(name.encode(), digest_size=16)",
        ("test_sound_studies_pass",),
    ),
    Mutant(
        "study-refuses-strays",
        "a study refuses a batch because one user left the policy",
        "    data.check(driver.mechanism.shape)\n",
        "    if not data.followed(driver.support()).all():\n"
        '        raise StudyError("Somebody left the policy; nothing was counted.")\n',
        ("test_who_leaves_the_policy_has_a_release", "test_sound_studies_pass"),
    ),
    Mutant(
        "strays-return",
        "who left the policy counts again later",
        "np.logical_and.accumulate(inside, axis=1)",
        "inside",
        ("test_only_steps_before_the_first_stray_one_count", "test_sound_studies_pass"),
    ),
    Mutant(
        "any-entry-before",
        "an entry that was rewritten with its hash is accepted: the next one need not quote it",
        "any(entry.get(name) != value for name, value in due.items())",
        "False",
        ("test_what_does_not_follow_is_refused",),
    ),
    Mutant(
        "token-of-any-batch",
        "reports of a batch are accepted in a later one that asks the same",
        "{self._key.hex()}:{self.batches}:{batch.users}:",
        "{self._key.hex()}:{batch.users}:",
        ("test_a_token_is_of_one_batch_and_one_policy",),
    ),
    Mutant(
        "token-of-any-policy",
        "reports made under another policy are accepted",
        "hashlib.blake2b(text + batch.policy.key, digest_size=16)",
        "hashlib.blake2b(text, digest_size=16)",
        ("test_a_token_is_of_one_batch_and_one_policy",),
    ),
    Mutant(
        "commits-in-the-cache",
        "a batch that was counted is forgotten when the power fails, and its users return",
        '    "PRAGMA synchronous = FULL",\n)\n_DAMAGE',
        '    "PRAGMA synchronous = OFF",\n)\n_DAMAGE',
        ("test_a_commit_is_on_the_disk_and_what_is_deleted_is_zeroed",),
    ),
    Mutant(
        "charged-until-the-next-batch",
        "who reported twice is charged once as soon as the batch is counted",
        '{**self._issue, "number": 0, "users": 0}',
        '{**self._issue, "number": 0, "users": 0, "releases": 1}',
        ("test_who_reports_again_is_charged_unless_nothing_was_seen",),
    ),
    Mutant(
        "local-reports-unseen",
        "reports that the operator holds are taken for unseen, and second ones are free",
        '        if returning == "unseen" and self.guarantee.notion == "LDP":\n',
        "        if False:\n",
        ("test_under_local_trust_a_report_that_was_sent_has_been_seen",),
    ),
    Mutant(
        "whole-reports-unsaid",
        "who counts reports that nobody mixed is not told that he is the shuffler",
        '    whole = study.mechanism.guarantee.notion == "SDP" and not mixed(data)\n',
        "    whole = False\n",
        ("test_whoever_counts_whole_reports_is_the_shuffler",),
    ),
    Mutant(
        "certified-by-nobody",
        "a dossier without a certificate says that the noise is certified",
        "            proven=bool(made) and all(proof.text for proof in made),\n",
        "            proven=all(proof.text for proof in made),\n",
        ("test_without_a_certificate_nothing_is_called_certified",),
    ),
    Mutant(
        "unknown-is-worthless",
        "states in which nothing is known are worth nothing, with certainty",
        "            lost += float(share[~known[h]].sum()) * (horizon - h)\n",
        "            lost += 0.0\n",
        ("test_what_is_not_known_may_be_worth_all_that_is_left",),
    ),
)

_RHO = (
    Mutant(
        "rho-doubled",
        "a budget rho is calibrated for twice as much, and what comes out is not looked at",
        "    if most is not None and rho > most:",
        "    if most is not None and rho > 2 * most:",
        ("test_a_calibrator_that_spends_more_is_refused",),
    ),
    Mutant(
        "rho-without-gaussian-noise",
        "a budget rho is granted to noise that is not Gaussian",
        "    if most is not None and rho is None:",
        "    if most is not None and rho is None and False:",
        ("test_a_budget_is_refused_where_it_means_nothing",),
    ),
    Mutant(
        "rho-misconverted",
        "the epsilon of a budget rho is that of twice as much",
        "gaussian_epsilon(1.0, math.sqrt(2 * rho * (1 - 1e-6)), delta)",
        "gaussian_epsilon(1.0, math.sqrt(4 * rho * (1 - 1e-6)), delta)",
        ("test_the_noise_keeps_to_the_budget_and_hardly_below",),
    ),
)

_FIT = (
    Mutant(
        "fit-other-dropped",
        "who takes an undeclared action is dropped instead of being counted as OTHER",
        "            support[:, :, most] = ~declared.all(axis=2)",
        "            support[:, :, most] = False",
        ("test_undeclared_actions_are_released_as_other",),
    ),
    Mutant(
        "fit-recommends-the-impossible",
        "a fit declares the actions that its mask forbids",
        "    declared = size.mask\n    if support is not None:\n",
        "    declared = np.ones(size.visits, np.bool_)\n    if support is not None:\n",
        ("test_a_fit_never_recommends_what_is_impossible",),
    ),
    Mutant(
        "fit-credits-whoever-is-gone",
        "who begins outside the declared starts earns half a reward a step",
        "participations == 1 and anywhere:",
        "participations == 1:",
        ("test_nothing_is_credited_to_whoever_begins_elsewhere_or_does_the_impossible",),
    ),
    Mutant(
        "fit-refuses-undeclared",
        "a fit is refused because somebody took an undeclared action",
        "        after = given.states\n",
        "        after = given.states\n        if (self.action_of[steps, after[:, :-1], moved] < 0).any():\n"
        '            raise ValueError("undeclared")\n',
        ("test_no_episode_is_refused_and_one_user_moves_the_sums_by_no_more_than_the_plan_says",),
    ),
    Mutant(
        "fit-noise-halved",
        "the release is calibrated for twice the epsilon",
        "trust.calibrate(shape, statistics=statistics, last_transitions=True, together=True)",
        "type(trust)(2 * trust.epsilon, trust.delta, trust.mechanism).calibrate(\n"
        "            shape, statistics=statistics, last_transitions=True)",
        ("test_the_noise_is_that_of_the_plan_for_this_trust",),
    ),
    Mutant(
        "fit-rewards-uncalibrated",
        "rewards ride on the noise of transitions alone",
        "    mechanism = _calibrated(trust, slots.shape, statistics)\n",
        "    mechanism = _calibrated(trust, slots.shape, statistics[:1])\n"
        '    object.__setattr__(mechanism, "statistics", statistics)\n',
        ("test_the_noise_is_that_of_the_plan_for_this_trust",),
    ),
    Mutant(
        "fit-rows-from-data",
        "only rows that somebody visited are released",
        "return mechanism.release(counts, sampler=randomness.sampler, support=slots.support)",
        "return mechanism.release(counts, sampler=randomness.sampler, support=counts.visits > 0)",
        ("test_every_declared_counter_has_noise_whether_somebody_was_there_or_not",),
    ),
    Mutant(
        "fit-counts-behind-the-release",
        "a value is read off the raw data, behind the release",
        "    found = _fitted(counts, slots, known, told, stationary, float(width), vocabulary)",
        "    width = width + float(data.row_rewards.mean())\n"
        "    found = _fitted(counts, slots, known, told, stationary, float(width), vocabulary)",
        ("test_the_release_is_all_that_is_seen",),
    ),
    Mutant(
        "fit-secure-is-seeded",
        "secure noise comes from a seeded generator",
        "return cls(SecureSampler(), np.random.default_rng())",
        "return cls(SimulationSampler(np.random.default_rng(0)), np.random.default_rng())",
        ("test_secure_noise_is_the_operating_systems",),
    ),
    Mutant(
        "fit-rehearsal-looks-real",
        "a fit with simulated noise prints its guarantee as if it were one",
        '    if not guarantee.simulated or guarantee.notion == "none":',
        "    if guarantee:",
        ("test_a_rehearsal_says_so_and_a_real_fit_does_not",),
    ),
    Mutant(
        "fit-claims-without-noise",
        "the lower value forgets the noise on the rewards",
        "math.sqrt(sampling + noise / users**2))",
        "math.sqrt(sampling))",
        ("test_the_standard_error_covers",),
    ),
    Mutant(
        "fit-forgets-first-states",
        "the claimed gain forgets the noise on where people begin",
        "    return max(mean - width * math.sqrt(sampling + noise), 0.0)",
        "    return max(mean - width * math.sqrt(sampling), 0.0)",
        ("test_many_first_states_cost_their_noise",),
    ),
    Mutant(
        "evaluation-counts-behind-the-release",
        "an evaluation reads a value off the raw data, behind the release",
        "    found = evaluated(counts, chosen, defers, known)",
        "    chosen = chosen + 1e-9 * float(data.row_rewards.mean())\n"
        "    found = evaluated(counts, chosen, defers, known)",
        ("test_the_release_is_all_that_an_evaluation_sees",),
    ),
    Mutant(
        "evaluation-without-noise",
        "the interval of an evaluation forgets the noise of the transitions",
        "            variance += float((noisy * flow.project(flow.spread(noisy), 0.0)).sum())",
        "            variance += 0.0",
        ("test_the_error_is_that_of_noise_and_sampling",),
    ),
    Mutant(
        "evaluation-without-reward-noise",
        "the interval of an evaluation forgets the noise of the rewards",
        "        variance += reward_noise * float((of_rewards[flow.support] ** 2).sum())",
        "        variance += 0.0 * reward_noise",
        ("test_the_error_is_that_of_noise_and_sampling",),
    ),
    Mutant(
        "fit-forgets-later-doubts",
        "an action is recommended as if the values of later states were known",
        "width * np.sqrt(variance + rest + moved)",
        "width * np.sqrt(variance + rest)",
        ("test_what_is_not_known_of_later_values_counts_where_actions_lead_elsewhere",),
    ),
)

_RETURNING = (
    Mutant(
        "returning-batches-free",
        "people who return are calibrated for as if they took part once",
        "units = 2 * moves * participations",
        "units = 2 * moves",
        (
            "test_four_participations_cost_twice_the_noise",
            "test_added_noise_covers_two_batches_of_which_the_second_is_chosen",
        ),
    ),
    Mutant(
        "returning-histogram-free",
        "the shuffled histogram ignores participations, all others count them",
        "last_transitions=last,\n            participations=trust.participations,",
        "last_transitions=last,",
        ("test_shuffled_histograms_cover_two_batches_of_which_the_second_is_chosen",),
    ),
    Mutant(
        "returning-curator-free",
        "the curator's noise on a batch ignores participations",
        "last_transitions=last,\n            participations=m,",
        "last_transitions=last,",
        ("test_added_noise_covers_two_batches_of_which_the_second_is_chosen",),
    ),
    Mutant(
        "returning-reports-free",
        "one-step and split reports have the whole epsilon every time",
        "return exact_flip(trust, trust.participations)",
        "return exact_flip(trust, 1)",
        ("test_reports_cover_two_of_which_the_second_is_chosen",),
    ),
    Mutant(
        "returning-bits-free",
        "flipped bits are counted for one report",
        "return flip_probability(trust, Sensitivity.of(shape.horizon, statistics, participations=m))",
        "return flip_probability(trust, Sensitivity.of(shape.horizon, statistics))",
        ("test_reports_cover_two_of_which_the_second_is_chosen",),
    ),
    Mutant(
        "laplace-by-the-root",
        "Laplace noise for several participations grows like the root of their number",
        "discrete_laplace_scale(sensitivity.l1, float",
        "discrete_laplace_scale(round(sensitivity.l1 / sensitivity.participations**0.5), float",
        ("test_laplace_takes_the_whole_factor_unless_a_delta_composes",),
    ),
    Mutant(
        "returning-columns-apart",
        "columns of a square root are added as if they were orthogonal",
        "total += 2 * (m - k) * min(1.0, worst / ROUNDED_DOWN)",
        "total += 0.0",
        ("test_no_sum_of_columns_is_longer_than_said",),
    ),
    Mutant(
        "returning-nodes-apart",
        "a person is in a node of a tree once at most",
        "most = [min(m, -(-(1 << level) // b)) for level",
        "most = [min(1, -(-(1 << level) // b)) for level",
        ("test_no_nodes_of_a_tree_hold_one_person_more_often_than_said",),
    ),
    Mutant(
        "returning-responses-linear",
        "the delta of composed responses is not looked at",
        "<= delta * (1 - 1e-9)\n",
        "<= delta * 100\n",
        ("test_responses_compose_exactly",),
    ),
    Mutant(
        "returning-per-batch",
        "a study counts participations in the batch at hand, not in the whole study",
        "places = self._participants.matches(digests, most)",
        "places: list[int] = []",
        ("test_a_person_comes_twice_and_not_a_third_time",),
    ),
    Mutant(
        "returning-once-more",
        "a study takes people once more than is guaranteed for",
        "if often >= times}",
        "if often > times}",
        ("test_a_person_comes_twice_and_not_a_third_time",),
    ),
    Mutant(
        "returning-service",
        "the proof of a charter is for one participation, whatever its tickets are worth",
        '"participations": self.participations,\n                "states"',
        '"participations": 1,\n                "states"',
        ("test_a_charter_counts_on_people_who_return",),
    ),
    Mutant(
        "returning-service-per-batch",
        "a ticket is worth so many reports of a batch, and again in the next one",
        "if uses >= most:",
        "if row is not None and number == row.number and uses >= most:",
        ("test_p31_a_ticket_is_worth_so_many_batches_and_one_report_in_each",),
    ),
    Mutant(
        "returning-service-ignored",
        "a ticket is worth all batches, once each",
        'GOOD = "uses < ? AND',
        'GOOD = "uses < 99 + ? AND',
        ("test_a_ticket_that_somebody_else_has_spent_meanwhile_is_not_claimed",),
    ),
    Mutant(
        "returning-service-twice-in-a-batch",
        "a ticket gives a batch two reports",
        'GOOD = "uses < ? AND coalesce(number, -1) <> ?"',
        'GOOD = "uses < ? AND coalesce(number, -1) > -9 - ?"',
        ("test_a_ticket_that_somebody_else_has_spent_meanwhile_is_not_claimed",),
    ),
    Mutant(
        "returning-service-twice-in-a-batch-answered",
        "a ticket that is in the open batch is not refused",
        "if row is not None and number == row.number:",
        "if row is not None and number == -9:",
        ("test_p31_a_ticket_is_worth_so_many_batches_and_one_report_in_each",),
    ),
    Mutant(
        "returning-service-counted-later",
        "a report is answered, and its use is not on the disk",
        "claimed = self._claim(list(chosen), row.number)",
        "claimed = set(chosen)",
        ("test_p31_an_attacker_is_counted_so_often_at_most_whoever_is_killed_when",),
    ),
    Mutant(
        "returning-service-restored",
        "a restored store gives those who were there before their other batches",
        "UPDATE ticket SET uses = ?, number = ? WHERE uses < ?",
        "UPDATE ticket SET uses = ?, number = ? WHERE uses < 1 AND uses < ?",
        ("test_p22_a_restored_shuffler_lets_nobody_in_twice",),
    ),
    Mutant(
        "returning-service-another-study",
        "an analyser counts a study for other participations than its charter says",
        "and study.guarantee.participations == charter.participations",
        "and study.guarantee.participations > 0",
        ("test_a_charter_counts_on_people_who_return",),
    ),
    Mutant(
        "returning-fit",
        "fit puts all episodes of a person into one release and pays for m",
        "data = data[drawn(people.of, most, randomness.rounding)]",
        "pass",
        ("test_what_anybody_did_does_not_say_which_episodes_are_drawn",),
    ),
    Mutant(
        "returning-fit-by-content",
        "fit keeps the episodes that earned most, however many of them are one person's",
        "data = data[drawn(people.of, most, randomness.rounding)]",
        "data = data[np.argsort(-data.rewards.sum(axis=1))[: most * people.number]]",
        ("test_what_anybody_did_does_not_say_which_episodes_are_drawn",),
    ),
    Mutant(
        "returning-fit-root",
        "m episodes in one release are taken for m releases, sqrt(m) for m",
        "return cls(units, pile * participations, horizon)",
        "return cls(units, pile, horizon)",
        (
            "test_the_whole_view_of_two_episodes_in_one_release_is_enumerated",
            "test_two_episodes_of_one_person_in_one_release_hold_and_less_noise_does_not",
        ),
    ),
    Mutant(
        "returning-fit-composed",
        "fit asks for the noise of m releases and makes one",
        "last_transitions=True, together=True)",
        "last_transitions=True)",
        ("test_two_episodes_of_one_person_in_one_release_hold_and_less_noise_does_not",),
    ),
    Mutant(
        "returning-fit-once",
        "m episodes in one release are paid for as one",
        "return cls(units, pile * participations, horizon)",
        "return cls(2 * moves, pile, horizon)",
        ("test_the_whole_view_of_two_episodes_in_one_release_is_enumerated",),
    ),
    Mutant(
        "returning-fit-number",
        "the number of episodes is released as it is",
        "places = most * people.number",
        "places = counts.users",
        ("test_two_episodes_of_one_person_move_the_sums_by_exactly_what_the_plan_says",),
    ),
    Mutant(
        "returning-fit-by-a-stranger",
        "a mechanism of somebody's own is trusted with several episodes in one release",
        "if request.together and several > 1 and not",
        "if request.together and several > 99 and not",
        ("test_a_stranger_that_does_not_know_of_one_release_for_all_is_refused",),
    ),
    Mutant(
        "returning-to-a-stranger",
        "a mechanism of somebody's own is trusted with participations it does not count",
        "if participations > 1 and not self.returning:",
        "if participations > 99 and not self.returning:",
        ("test_a_mechanism_of_ones_own_says_that_it_counts_participations",),
    ),
)

_PEOPLE = (
    Mutant(
        "ignorables-kept",
        "a character that nobody sees makes a second person of one",
        'seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))',
        'seen = unicodedata.normalize("NFKC", name)',
        ("test_spellings_of_one_name_are_one_person_or_refused",),
    ),
    Mutant(
        "wide-letters-kept",
        "names are composed, but compatible letters stay different",
        'seen = _UNSEEN.sub("", unicodedata.normalize("NFKC", name))',
        'seen = _UNSEEN.sub("", unicodedata.normalize("NFC", name))',
        ("test_spellings_of_one_name_are_one_person_or_refused",),
    ),
    Mutant(
        "controls-accepted",
        "a NUL in a name makes a second person of one",
        "    if wrong := _REFUSED.search(name):",
        "    if wrong := None:",
        ("test_spellings_of_one_name_are_one_person_or_refused",),
    ),
    Mutant(
        "study-takes-names-as-they-are",
        "studies do not bring names to one spelling",
        "            name = person(user)\n        except",
        "            name = str(user)\n        except",
        ("test_spellings_of_one_name_are_one_person_or_refused[one_batch",),
    ),
    Mutant(
        "ledger-takes-names-as-they-are",
        "ledgers do not bring names to one spelling",
        "        name = person(user)\n        if name in names:",
        "        name = str(user)\n        if name in names:",
        ("test_spellings_of_one_name_are_one_person_or_refused[one_release",),
    ),
    Mutant(
        "tables-take-names-as-they-are",
        "readers of tables do not bring names to one spelling",
        'name = person("" if cell is None else cell)',
        "name = str(cell)",
        ("test_spellings_of_one_name_are_one_person_or_refused[frame",),
    ),
    Mutant(
        "fit-not-charged",
        "a fit with a ledger charges nobody",
        '    if ledger is None or sampler != "secure":',
        '    if ledger is None or sampler != "insecure":',
        ("test_every_release_is_charged_with_what_it_guarantees",),
    ),
    Mutant(
        "fit-charged-after-the-release",
        "a crash between release and charge loses the charge",
        "    account = charged(ledger, people, sampler, guarantee_of(trust, slots, statistics))\n"
        "    counts = release(\n"
        "        data,\n        slots,\n        trust,\n        statistics=statistics,\n"
        "        keep_last=stationary,\n        randomness=randomness,\n        people=people,\n"
        "    )\n",
        "    counts = release(\n"
        "        data,\n        slots,\n        trust,\n        statistics=statistics,\n"
        "        keep_last=stationary,\n        randomness=randomness,\n        people=people,\n"
        "    )\n"
        "    account = charged(ledger, people, sampler, guarantee_of(trust, slots, statistics))\n",
        ("test_the_charge_is_written_before_anything_is_drawn",),
    ),
    Mutant(
        "evaluation-of-all-episodes",
        "an evaluation counts every episode of a person, with the noise for m",
        "        people=people,\n    )\n    chosen = np",
        "        people=people._replace(of=None),\n    )\n    chosen = np",
        ("test_whoever_has_more_episodes_is_counted_m_times_through_every_door",),
    ),
    Mutant(
        "dp-apvi-of-all-episodes",
        "DP-APVI counts every episode of a person, with the noise for m",
        "        people=people,\n    )\n    return pessimistic_policy(",
        "        people=people._replace(of=None),\n    )\n    return pessimistic_policy(",
        ("test_whoever_has_more_episodes_is_counted_m_times_through_every_door",),
    ),
    Mutant(
        "evaluation-charged-after-the-release",
        "an evaluation is charged when it has been made",
        "    account = charged(ledger, people, sampler, guarantee_of(trust, slots, statistics))\n"
        "    counts = release(\n"
        "        data,\n        slots,\n        trust,\n        statistics=statistics,\n"
        "        keep_last=False,\n        randomness=randomness,\n        people=people,\n"
        "    )\n",
        "    counts = release(\n"
        "        data,\n        slots,\n        trust,\n        statistics=statistics,\n"
        "        keep_last=False,\n        randomness=randomness,\n        people=people,\n"
        "    )\n"
        "    account = charged(ledger, people, sampler, guarantee_of(trust, slots, statistics))\n",
        ("test_an_evaluation_is_charged_before_anything_is_drawn",),
    ),
    Mutant(
        "ledger-forgets",
        "a charge is added up and not written",
        "            self._write(content.charged(cost, table, people))",
        "            content.charged(cost, table, people)",
        ("test_releases_about_one_person_add_up_and_those_about_others_do_not",),
    ),
    Mutant(
        "ledger-whole-tables-only",
        "people are recognised by the table's file alone",
        "met = members if same & set(history) else np.intersect1d(members, given)",
        "met = members if same & set(history) else members[:0]",
        ("test_people_are_recognised_whatever_becomes_of_their_table",),
    ),
    Mutant(
        "ledger-names-only",
        "the same file with other names is another table",
        "if table and other == table}",
        "if table and other is None}",
        ("test_a_table_is_recognised_whatever_its_people_are_called",),
    ),
    Mutant(
        "ledger-dearest-release",
        "releases about one person cost what the dearest of them costs",
        "sums = [sum((self.releases[i][0] for i in history), Cost.of(0)) for history in people]",
        "sums = [sum((self.releases[i][0] for i in history[-1:]), Cost.of(0)) for history in people]",
        (
            "test_releases_about_one_person_add_up_and_those_about_others_do_not",
            "test_tenths_are_tenths",
        ),
    ),
    Mutant(
        "ledger-without-a-lock",
        "two processes at once both find the budget whole",
        "            lock = hold_alone(_behind(self.path), wait=True)",
        "            lock = os.open(os.devnull, os.O_RDONLY)",
        ("test_two_processes_at_once_lose_no_charge",),
    ),
    Mutant(
        "ledger-link-replaced",
        "a link to a ledger is replaced by a ledger of its own, which the others do not see",
        "    return Path(os.path.realpath(path))\n",
        "    return path\n",
        ("test_links_to_one_ledger_are_that_ledger",),
    ),
    Mutant(
        "budget-raised",
        "a declared budget is replaced by a larger one",
        "        if declared is not None and not declared.covers(wanted):",
        "        if declared is None and wanted is None:",
        ("test_a_budget_is_kept_and_may_shrink_and_not_grow",),
    ),
)

_CLASSES = (
    Mutant(
        "histogram-lambda-halved",
        "groups carry half of the noise that was calibrated",
        '"mean": groups_mean(moves, epsilon, delta),',
        '"mean": groups_mean(moves, epsilon, delta) / 2,',
        ("test_groups_count_what_a_user_can_move",),
    ),
    Mutant(
        "histogram-one-group-free",
        "the last step's transitions are released and not paid for",
        "last_transitions=last,\n            participations=trust.participations,",
        "last_transitions=False,\n            participations=trust.participations,",
        ("test_groups_count_what_a_user_can_move",),
    ),
    Mutant(
        "histogram-fewer-noise-cells-in-the-mean",
        "the analyser takes out the mean of K - 1 noise cells",
        "Fraction(users * one.noise * one.weight, WORD * one.cells)",
        "Fraction(users * (one.noise - 1) * one.weight, WORD * one.cells)",
        ("test_without_noise_the_analyser_finds_the_counts",),
    ),
    Mutant(
        "histogram-without-none",
        "who left the policy is in no cell: totals say how many, without noise",
        "        cells[-1] = counts.users - cells.sum()",
        "        cells[-1] = 0",
        ("test_a_release_counts_who_left",),
    ),
    Mutant(
        "histogram-half-of-the-rate",
        "noise cells fall with half of their probability",
        "sampler.scatter(users * one.noise, one.weight / WORD, one.cells)",
        "sampler.scatter(users * one.noise, one.weight / WORD / 2, one.cells)",
        ("test_unbiased_with_the_stated_variances",),
    ),
    Mutant(
        "histogram-zeros-not-sent",
        "a reward of zero has no cell: group totals are sums of rewards",
        "            cells[:-1:2] = counts.row_visits[rows] - counts.row_rewards[rows]",
        "            cells[:-1:2] = 0",
        ("test_unbiased_with_the_stated_variances",),
    ),
    Mutant(
        "histogram-early-release",
        "a batch is released before all its users came",
        "    if (received != expected).any():\n        i =",
        "    if (received > expected).any():\n        i =",
        ("test_an_early_release_is_refused",),
    ),
    Mutant(
        "histogram-everybody-honest",
        "the noise of dishonest users is counted on",
        "    return mean * users / honest_users(honest, users)",
        "    return mean",
        (
            "test_the_reliable_users_alone_add_enough",
            "test_those_who_are_counted_on_add_the_mean_exactly",
        ),
    ),
    Mutant(
        "histogram-devices-all-honest",
        "devices are not told that the noise of dishonest users is missing",
        "            mean=self.intensity(users),\n        )",
        "            mean=self.mean,\n        )",
        ("test_device_and_analyser_have_the_same_groups",),
    ),
    Mutant(
        "histogram-batch-not-checked",
        "a batch is taken to be covered by its limit",
        "        check = check_batch if real else check_means",
        "        check = check_means",
        ("test_a_batch_that_its_limit_does_not_cover_is_refused",),
    ),
    Mutant(
        "histogram-raw-counts-not-checked",
        "raw counts of real people are released although their limit does not cover them",
        "        groups = self._checked(users, mask, real=sampler.secure)",
        "        groups = self._checked(users, mask, real=False)",
        ("test_raw_counts_of_real_people_are_checked_before_their_release",),
    ),
    Mutant(
        "histogram-small-ones-not-checked",
        "groups of few cells are taken to be covered by their limit",
        "        if one.cells > 1:  # with nothing but none, nobody can move",
        "        if one.cells > 5:",
        ("test_every_class_in_which_somebody_can_move_is_checked",),
    ),
    Mutant(
        "histogram-noise-of-those-who-stay",
        "noise is drawn for the users on the policy: nobody there, no noise",
        "sampler.scatter(users * one.noise, one.weight",
        "sampler.scatter(int(steps.histogram(one, kept)[:-1].sum()) * one.noise, one.weight",
        ("test_where_everybody_left_every_cell_has_its_noise_and_groups_share_none",),
    ),
    Mutant(
        "histogram-share-their-noise",
        "groups of equal size carry one draw: its difference is without noise",
        "            + sampler.scatter(users * one.noise, one.weight / WORD, one.cells)\n",
        "            + shared.setdefault(\n"
        "                (one.cells, one.noise, one.weight),\n"
        "                sampler.scatter(users * one.noise, one.weight / WORD, one.cells),\n"
        "            )\n"
        "            for shared in [{}]\n",
        ("test_where_everybody_left_every_cell_has_its_noise_and_groups_share_none",),
    ),
    Mutant(
        "histogram-mean-of-the-honest",
        "the mean of the honest users' noise is taken out of that of all",
        "rows, mean = steps.rows(one.step), _noise_mean(one, users)",
        "rows, mean = steps.rows(one.step), _noise_mean(one, self.reliable(users))",
        ("test_where_everybody_left_every_cell_has_its_noise_and_groups_share_none",),
    ),
    Mutant(
        "histogram-none-of-the-honest",
        "the mean of the honest users' noise is taken out of those who left",
        "            dropped_out=_dropped_out(groups, histograms, users),",
        "            dropped_out=_dropped_out(groups, histograms, self.reliable(users)),",
        ("test_where_everybody_left_every_cell_has_its_noise_and_groups_share_none",),
    ),
    Mutant(
        "histogram-infinite-loss-forgotten",
        "an empty cell, which no neighbour can have, costs nothing",
        "return float(self.deltas[-1]) + self.outside",
        "return self.outside",
        ("test_large_epsilons_need_something_in_every_cell",),
    ),
    Mutant(
        "histogram-certificate-forgets-empty-cells",
        "the verifier drops views that no neighbour has",
        "lost += sum(joint) - sum(m for m, _, _ in finite)",
        "lost += 0",
        ("test_the_verifier_counts_empty_cells",),
    ),
    Mutant(
        "histogram-certificate-loses-too-little",
        "the verifier takes off what two moves have lost together once too often",
        "x[2] + y[2] - both), cut)",
        "x[2] + y[2] - 2 * both), cut)",
        ("test_a_move_is_lost_if_one_of_its_parts_is",),
    ),
    Mutant(
        "certificate-moves-not-derived",
        "the verifier takes the counters of one statistic for those of all",
        "    units, tree = 2 * len(names) * horizon, ",
        "    units, tree = 2 * horizon, ",
        ("test_the_verifier_derives_the_moves_that_were_certified",),
    ),
    Mutant(
        "certificate-of-one-level",
        "the verifier forgets that an episode is in a node of every level",
        '    levels = max(1, (release["episodes"] - 1).bit_length()) if tree else 1\n',
        "    levels = 1\n",
        ("test_the_verifier_derives_the_moves_that_were_certified",),
    ),
    Mutant(
        "certificate-of-any-participations",
        "a certificate of one episode may say that people take part in four",
        'm, apart = release["participations"], release.get("separation", 1)',
        "m, apart = 1, 1",
        ("test_participations_are_in_the_verified_part",),
    ),
    Mutant(
        "certificate-of-other-users",
        "the noise of a batch may be said to be that of more users",
        "wrong = not honest or type(n) is not int or n % honest != 0",
        "wrong = not honest or type(n) is not int",
        ("test_what_cannot_be_is_refused",),
    ),
    Mutant(
        "certificate-options-ignored",
        "a certificate is verified whatever the options ask for",
        "        return (*_mechanism(guarantee, release), math.inf) if typed else None\n",
        "        return None\n",
        ("test_a_certificate_of_something_else_is_refused",),
    ),
    Mutant(
        "certificate-for-another-design",
        "a certificate is verified whatever the design says",
        "            verifier.compare(data, claim_of(mechanism, users=users or stated",
        "            (data, claim_of(mechanism, users=users or stated",
        ("test_a_certificate_for_another_design_is_refused",),
    ),
    Mutant(
        "certificate-of-a-weaker-guarantee",
        "a certificate of a larger epsilon will do",
        "        if said > due:\n",
        "        if said > 100 * due:\n",
        ("test_a_weaker_guarantee_is_refused_and_a_stronger_one_is_not",),
    ),
    Mutant(
        "certificate-of-more-noise",
        "a certificate of more noise than the plan has will do",
        '    _same(data, wanted, "noise")\n',
        "",
        ("test_an_edited_certificate_is_refused_or_says_what_it_proves[central-batch-laplace]",),
    ),
    Mutant(
        "dossier-with-another-proof",
        "a dossier takes a certificate of another plan for its own",
        "        verify(data, of=mechanism, users=users)\n",
        "        verify(data)\n",
        ("test_a_certificate_of_another_plan_is_none",),
    ),
)

_SERVICE = (
    Mutant(
        "service-batch-released-early",
        "a batch counts as full one user too soon",
        'state = "full" if received == users else "open"',
        'state = "full" if received >= users - 1 else "open"',
        (
            "test_the_whole_life_of_a_batch",
            "test_p01_nothing_leaves_before_n_distinct_users",
        ),
    ),
    Mutant(
        "service-not-permuted",
        "envelopes are handed over in the order in which they came",
        "return envelopes[order].tobytes()\n",
        "return data\n",
        ("test_p08_every_order_is_equally_likely",),
    ),
    Mutant(
        "service-one-bucket-order",
        "buckets follow each other in the order of arrival",
        "drawn = np.frombuffer(os.urandom(4 * len(envelopes)), np.uint32) & np.uint32(buckets - 1)",
        "drawn = (np.arange(len(envelopes)) * buckets // len(envelopes)).astype(np.uint32)",
        ("test_p08_every_order_is_equally_likely",),
    ),
    Mutant(
        "service-less-noise-published",
        "a manifest may state less noise than the charter asks for",
        "if layout_of(device.groups) != manifest.layout:",
        "if len(device.groups) != len(manifest.layout):",
        ("test_p12_a_manifest_that_states_other_noise_is_refused_by_everybody",),
    ),
    Mutant(
        "service-least-users-forgotten",
        "a batch may be smaller than the charter says",
        "if manifest.users < charter.min_users:",
        "if manifest.users < 1:",
        ("test_p01_nothing_leaves_before_n_distinct_users",),
    ),
    Mutant(
        "service-proof-of-another-noise",
        "the certificate may be about more noise than devices add",
        '"noise": {"name": "poisson", "mean": str(self.mean)},',
        '"noise": self.certificate["noise"],',
        ("test_p12_a_charter_without_its_own_proof_is_refused",),
    ),
    Mutant(
        "service-proof-of-another-release",
        "the certificate may be about fewer groups, states or honest users",
        "            verifier.compare(said, self._proof)\n",
        "",
        ("test_p12_a_charter_without_its_own_proof_is_refused",),
    ),
    Mutant(
        "service-proof-unchecked",
        "the shuffler does not run the verifier",
        '            on_new()\n        with self._transaction("adopt")',
        '            pass\n        with self._transaction("adopt")',
        ("test_p12_a_charter_without_its_own_proof_is_refused",),
    ),
    Mutant(
        "service-expiry-keeps-bodies",
        "an expired batch keeps its reports on the disk",
        '        self._empty("report", "piece", "sealed")\n        received',
        "        received",
        (
            "test_p15_bodies_of_an_expired_batch_are_gone",
            "test_p04_a_kill_while_a_batch_expires_frees_all_or_nothing",
        ),
    ),
    Mutant(
        "service-done-keeps-messages",
        "messages stay after they were acknowledged",
        '            self._empty("sealed")\n            self._execute("UPDATE batch SET state = \'done\'',
        "            self._execute(\"UPDATE batch SET state = 'done'",
        ("test_p15_bodies_and_keys_are_gone_after_done",),
    ),
    Mutant(
        "service-deleted-pages-kept",
        "SQLite keeps what was deleted",
        '"PRAGMA secure_delete = ON",\n    "PRAGMA temp_store = MEMORY",\n    "PRAGMA trusted_schema',
        '"PRAGMA secure_delete = OFF",\n    "PRAGMA temp_store = MEMORY",\n    "PRAGMA trusted_schema',
        ("test_p15_bodies_and_keys_are_gone_after_done",),
    ),
    Mutant(
        "service-key-kept",
        "the key of a counted batch stays on the disk",
        "        path.unlink()\n    except FileNotFoundError:\n        return",
        "        return\n    except FileNotFoundError:\n        return",
        ("test_a_whole_study_through_all_roles",),
    ),
    Mutant(
        "service-envelopes-of-any-group",
        "an envelope can be moved to another group",
        "return _DOMAIN + bytes([ENVELOPE_VERSION]) + manifest + place.to_bytes(4)",
        "return _DOMAIN + bytes([ENVELOPE_VERSION]) + manifest + bytes(4)",
        ("test_p06_an_envelope_moved_to_another_batch_or_group_is_a_dummy",),
    ),
    Mutant(
        "service-envelopes-of-any-batch",
        "an envelope can be moved to another batch",
        "return _DOMAIN + bytes([ENVELOPE_VERSION]) + manifest + place.to_bytes(4)",
        "return _DOMAIN + bytes([ENVELOPE_VERSION]) + bytes(32) + place.to_bytes(4)",
        ("test_p06_an_envelope_moved_to_another_batch_or_group_is_a_dummy",),
    ),
    Mutant(
        "service-copies-counted",
        "a shuffler can count a user twice by copying envelopes",
        "envelopes[self._copies[low:high] - first] = 0",
        "envelopes[self._copies[low:high] - first] += 0",
        ("test_p06_a_copied_envelope_counts_once_and_stops_nobody",),
    ),
    Mutant(
        "service-copies-of-one-slice",
        "copies are looked for among the envelopes of one slice only",
        "self._scatter(np.column_stack([heads, numbers]))",
        "self._scatter(np.column_stack([heads + numbers[0], numbers]))",
        ("test_any_two_envelopes_are_compared",),
    ),
    Mutant(
        "service-forgotten-tickets-admitted",
        "a recovered store admits tickets that were made, and perhaps used, before",
        "if not mark or one[SIZE:] == mark]",
        "if not mark or one[SIZE:] != bytes(SIZE)]",
        ("test_p22_no_ticket_that_was_made_before_a_recovery_is_good_after_it[sqlite-2-2",),
    ),
    Mutant(
        "service-migration-frees-tickets",
        "tickets that were spent in a store of version 2 are good again",
        '"UPDATE ticket SET uses = 1 WHERE number IS NOT NULL",\n    ),\n}\n_PRAGMAS',
        '"UPDATE ticket SET uses = 0 WHERE number IS NOT NULL",\n    ),\n}\n_PRAGMAS',
        ("test_p19_a_store_goes_on[sqlite-2",),
    ),
    Mutant(
        "extend-keeps-the-widths",
        "the widths of an extended study are those of the number that was planned",
        "        self.learner.extend(self.problem, pending=pending)\n",
        "",
        ("test_widths_are_those_of_a_study_that_was_planned_so",),
    ),
    Mutant(
        "extend-is-not-on-disk",
        "a study that was extended is read as it was planned",
        '            self.driver.extend(state["episodes"], pending=True)\n',
        "            pass\n",
        ("test_a_study_goes_on_with_more_users_than_were_planned[flow-ucb-Central",),
    ),
    Mutant(
        "extend-asks-again",
        "a batch that is pending is another one after the study was extended",
        "self.driver.extend(episodes, pending=pending)",
        "self.driver.extend(episodes, pending=False)",
        ("test_a_study_goes_on_with_more_users_than_were_planned[flow-ucb-Central",),
    ),
    Mutant(
        "unbounded-grid-of-a-short-stream",
        "the cost of the grid is that of the releases that were planned",
        "trust, sensitivity, episodes, longest\n    )",
        "trust, sensitivity, episodes, episodes\n    )",
        ("test_the_cost_of_the_grid_is_that_of_the_longest_stream",),
    ),
    Mutant(
        "unbounded-returns-cost-half",
        "who returns soon to an endless stream costs less than the product of two columns",
        "min(1.0, square * product)",
        "min(0.5, square * product)",
        ("test_closed_forms_are_the_sums_of_the_series",),
    ),
    Mutant(
        "service-older-study-goes-on",
        "an analyser whose study was put back from a copy destroys the open batch's key",
        "            self._check_over(current)\n",
        "",
        ("test_a_study_put_back_from_a_copy_changes_nothing",),
    ),
    Mutant(
        "service-others-reports-deleted",
        "a device that many share encodes again for whoever was there before",
        'older in self._folder.glob(f"{owner}-*.report")',
        'older in self._folder.glob("*.report")',
        ("test_tickets_that_share_an_outbox_are_encoded_once_each",),
    ),
    Mutant(
        "service-two-devices-at-once",
        "two processes of one device both encode",
        "        with self._outbox.alone():\n",
        "        with contextlib.nullcontext():\n",
        ("test_of_two_devices_with_one_outbox_only_one_works",),
    ),
    Mutant(
        "service-proxy-of-the-environment",
        "tickets and token go through whatever HTTP_PROXY names",
        "trust_env=False",
        "trust_env=True",
        ("test_nobody_is_told_secrets_because_the_environment_says_so",),
    ),
    Mutant(
        "service-tickets-in-the-open",
        "an address without TLS is taken",
        'if found[1] == "http" and found[2] not in _THIS_MACHINE:',
        'if found[1] == "ftp":',
        ("test_secrets_do_not_travel_in_the_open",),
    ),
    Mutant(
        "service-log-of-a-reader-kept",
        "what was deleted stays in the log if somebody reads the file meanwhile",
        "self.untidy = bool(busy)",
        "self.untidy = False",
        ("test_p15_a_log_that_somebody_reads_is_emptied_when_they_have_gone",),
    ),
    Mutant(
        "service-noise-checked-too-late",
        "a shuffler that cannot check the noise of a batch starts all the same",
        "    charter.prepare()\n",
        "",
        ("test_without_a_place_for_compiled_code_it_does_not_start",),
    ),
    Mutant(
        "service-promise-rounded-down",
        "the page promises less than epsilon allows",
        "return (nearest < number ? nearest + 0.01 : nearest).toFixed(2);",
        "return nearest.toFixed(2);",
        ("test_a_promise_is_not_rounded_down",),
    ),
    Mutant(
        "service-tickets-as-digests",
        "a shuffler takes the enroller's file of tickets for its digests",
        "if len(value) not in sizes or not line.startswith(mark):",
        "if len(value) not in sizes:",
        ("test_tickets_are_not_taken_for_digests_nor_digests_for_tickets",),
    ),
    Mutant(
        "service-ledger-rolled-back",
        "a ledger that lost its last entries is verified",
        "if at <= last:",
        "if len(counted) < 0:",
        ("test_a_ledger_that_counts_something_else_is_found",),
    ),
    Mutant(
        "service-encoded-again",
        "a device draws fresh noise for the same episode after an error",
        "sealed = self._outbox.read(self._owner, name)",
        "sealed = None",
        ("test_the_same_bytes_are_sent_until_somebody_answers",),
    ),
    Mutant(
        "service-second-encoding",
        "a shuffler that takes its refusal back gets a second encoding of the same episode",
        "            if state in TAKEN:\n                self._outbox",
        '            self._outbox.write(self._owner, "", b" ")\n'
        "            if state in TAKEN:\n                self._outbox",
        ("test_a_shuffler_that_takes_a_refusal_back_gets_the_same_bytes",),
    ),
    Mutant(
        "service-sent-before-kept",
        "a device that is killed while it sends draws fresh noise when it comes back",
        "                self._outbox.write(self._owner, name, sealed)\n",
        "",
        ("test_a_device_that_is_killed_sends_the_same_bytes_when_it_comes_back",),
    ),
    Mutant(
        "service-seeded-device",
        "a device of a real study takes somebody else's randomness",
        "if draws is not None and not chain.charter.rehearsal:",
        "if draws is not None and chain.charter is None:",
        ("test_p13_noise_comes_from_the_operating_system_and_cannot_be_seeded",),
    ),
    Mutant(
        "service-rehearsal-served",
        "a shuffler serves a charter that protects nobody without being told to",
        "        charter.check_rehearsal(rehearsal)\n",
        "",
        ("test_p13_a_rehearsal_is_refused_unless_asked_for_and_stamped_everywhere",),
    ),
    Mutant(
        "service-any-token",
        "any bearer token is the analyser's",
        "known = [hmac.compare_digest(digest, one) for one",
        "known = [len(digest) == len(one) for one",
        ("test_p09_the_analysers_endpoints_take_nobody_else",),
    ),
    Mutant(
        "service-fixed-delay",
        "devices send at once: the time tells who it was",
        "self._pause(secrets.SystemRandom().uniform(0, self._delay))",
        "self._pause(0.0)",
        ("test_p08_devices_wait_for_a_random_time",),
    ),
    Mutant(
        "service-chain-unchecked",
        "a device takes any signed manifest",
        "        manifests.check_follows(announced.manifest, self.seen)\n",
        "",
        ("test_a_fork_a_gap_and_an_older_manifest_are_refused",),
    ),
    Mutant(
        "service-tickets-of-another-study",
        "a store learns the tickets of a study whose charter it then refuses",
        "    def make_store() -> Store:\n        return open_store(config.where, charter, at)\n",
        "    def make_store() -> Store:\n        store = open_store(config.where, charter, at)\n"
        "        store.admit(digests)\n        return store\n",
        ("test_a_store_of_another_study_learns_no_tickets_of_this_one",),
    ),
    Mutant(
        "service-expiry-frees-everybody",
        "an expired batch frees the tickets of all batches before it",
        "SET uses = uses - 1, number = NULL WHERE number = ?",
        "SET uses = uses - 1, number = NULL WHERE number <= ?",
        ("test_an_expired_batch_frees_no_ticket_of_an_earlier_one",),
    ),
    Mutant(
        "service-batch-shrinks",
        "a batch that expired is announced anew for fewer users",
        "if now.batch == before.batch and now.users != before.users:",
        "if now.batch == before.batch and now.users > before.users:",
        ("test_a_batch_that_expired_does_not_come_back_smaller",),
    ),
    Mutant(
        "service-busy-acknowledged",
        "a report that a full disk did not take is acknowledged: its owner forgets it",
        "return [refusal.code] * len(reports)",
        'return ["accepted"] * len(reports)',
        ("test_a_store_that_is_busy_has_taken_nothing",),
    ),
    Mutant(
        "service-finite-noise-unchecked",
        "the shuffler opens a batch whose finite noise nobody has compared with the limit",
        "            self.charter.check_noise(manifest.users, announced.device.groups)\n"
        "        except InvalidInputError",
        "            pass\n        except InvalidInputError",
        ("test_a_batch_whose_noise_is_not_covered_is_not_opened",),
    ),
    Mutant(
        "service-key-of-an-expired-batch",
        "the key of an expired batch stays if the analyser was stopped before it went",
        "        if before is not None:\n            self._keys.destroy(before.manifest.number)\n",
        "",
        ("test_a_key_goes_although_its_analyser_was_stopped_after_the_batch_expired",),
    ),
    Mutant(
        "service-keys-for-everybody",
        "every account of the analyser's machine can read batch keys",
        "write_atomically(self._path(number), key.private_bytes_raw().hex().encode(), private=True)",
        "write_atomically(self._path(number), key.private_bytes_raw().hex().encode())",
        ("test_batch_keys_are_their_owner_s_alone",),
    ),
    Mutant(
        "service-commits-not-flushed",
        "a power cut undoes what was answered, and what was handed over",
        '"PRAGMA journal_mode = WAL",\n    "PRAGMA synchronous = FULL",\n    "PRAGMA secure',
        '"PRAGMA journal_mode = WAL",\n    "PRAGMA synchronous = OFF",\n    "PRAGMA secure',
        ("test_what_was_answered_outlives_a_power_cut",),
    ),
    Mutant(
        "service-abandoned-people-asked-again",
        "who was in a batch that the analyser may have opened is asked for another report",
        'if row.state != "handed":',
        "if row.state:",
        ("test_p21_tickets_are_free_iff_nothing_was_handed_over",),
    ),
    Mutant(
        "service-handed-over-in-secret",
        "the shuffler forgets that a batch has left it",
        "UPDATE batch SET state = 'handed' WHERE number = ?",
        "UPDATE batch SET state = 'sealed' WHERE number = ?",
        ("test_p21_tickets_are_free_iff_nothing_was_handed_over",),
    ),
    Mutant(
        "service-restored-tickets-free",
        "a store that was put back from a copy lets people take part who have taken part since",
        "self._execute(query, self._most, VOID, self._most)",
        "pass",
        ("test_p22_a_restored_shuffler_lets_nobody_in_twice",),
    ),
    Mutant(
        "service-rubbish-counted",
        "a batch of rubbish is counted, and nobody hears of it",
        "if worst <= most_unreadable(self.charter):",
        "if worst <= 1:",
        ("test_p27_a_batch_of_rubbish_needs_a_persons_word",),
    ),
    Mutant(
        "service-restored-store-keeps-bodies",
        "what a batch held stays in a store that was put back from a copy",
        """            self._empty("report", "piece", "sealed")
            self._execute("UPDATE batch SET state = 'abandoned', live = NULL WHERE live = 1")""",
        """            self._execute("UPDATE batch SET state = 'abandoned', live = NULL WHERE live = 1")""",
        ("test_p22_a_restored_shuffler_lets_nobody_in_twice",),
    ),
    Mutant(
        "service-earlier-handing-over-forgotten",
        "who was in a batch that an earlier version may have handed over is asked again",
        """        "'expired', 'abandoned'))",
        "UPDATE batch SET state = 'handed' WHERE state = 'sealed'",\n""",
        """        "'expired', 'abandoned'))",\n""",
        ("test_p19_what_an_earlier_version_sealed_may_have_been_handed_over",),
    ),
    Mutant(
        "service-rubbish-of-a-group-hidden",
        "one group may have no noise if the others have theirs",
        "        worst = max(shares)\n",
        "        worst = sum(shares, Fraction(0)) / len(shares)\n",
        ("test_p27_rubbish_is_measured_in_each_group",),
    ),
    Mutant(
        "service-more-rubbish-than-covered",
        "more people than the charter covers may add no noise",
        "return max(1 - charter.honest, RUBBISH)",
        "return 1 - charter.honest + RUBBISH",
        ("test_p27_as_much_is_allowed_as_the_charter_does_not_count_on",),
    ),
    Mutant(
        "service-every-rubbish-accepted",
        "a person's word for one batch is taken for all later ones",
        "if number == self._accepted:",
        "if self._accepted is not None:",
        ("test_p27_a_batch_of_rubbish_needs_a_persons_word",),
    ),
    Mutant(
        "service-another-copy-goes-on",
        "a copy that was given up acknowledges batches that it never counted",
        "        if not self._named() <= kept:\n            raise _another_copy()\n",
        "",
        ("test_of_two_copies_the_one_that_was_given_up_changes_nothing",),
    ),
    Mutant(
        "service-any-state-is-over",
        "a batch that was handed over and not counted is announced again",
        'and self._client.state(manifest.number) == "expired"',
        'and self._client.state(manifest.number) in ("expired", "handed")',
        ("test_only_an_expired_batch_is_over_although_nobody_has_counted_it",),
    ),
    Mutant(
        "service-lost-store-frees-people",
        "the study asks people again whose reports a lost store may have handed over",
        "self._give_up(number, number, free=False)",
        "self._give_up(number, number, free=True)",
        ("test_tickets_of_a_batch_that_the_shuffler_has_lost_are_void",),
    ),
    Mutant(
        "service-counted-people-free",
        "the ledger says that people who were counted may be asked again",
        'not in ("handed", "done", "abandoned")',
        'not in ("handed", "abandoned")',
        ("test_a_manifest_that_nobody_has_seen_does_not_stop_an_older_study",),
    ),
    Mutant(
        "service-abandoned-keys-kept",
        "keys of batches that were given up stay",
        "        for number in range(first, last + 1):\n            self._keys.destroy(number)\n",
        "",
        ("test_all_keys_of_what_is_given_up_go",),
    ),
    Mutant(
        "service-key-of-another-manifest",
        "a manifest is announced whose key was overwritten",
        "return self._keys.has(number) and self._keys.public(number) == manifest.key",
        "return self._keys.has(number)",
        ("test_a_kill_while_a_manifest_is_made_anew_voids_no_batch",),
    ),
    Mutant(
        "service-old-signing-key-gone-early",
        "the old signing key goes before the manifest that it has to sign is out",
        "for manifest in self._manifests()[:-1])",
        "for manifest in self._manifests())",
        ("test_p29_a_new_signing_key_is_handed_over_in_a_manifest",),
    ),
    Mutant(
        "service-any-signer",
        "after a rotation the old key still signs",
        "key = charter.signing_key if before is None else before.signer",
        "key = charter.signing_key",
        ("test_p29_a_new_signing_key_is_handed_over_in_a_manifest",),
    ),
    Mutant(
        "service-forgotten-before-a-backup",
        "the shuffler forgets a batch of which no backup exists",
        '        self._backup()\n        self._at("destroy.before")',
        '        self._at("destroy.before")',
        ("test_p22_no_batch_is_forgotten_before_a_backup_exists",),
    ),
    Mutant(
        "service-lost-body-released",
        "a batch that lost a body is handed over with fewer users",
        "if found != wanted:",
        "if found > wanted:",
        ("test_a_batch_that_lost_a_body_is_never_released",),
    ),
    Mutant(
        "service-copies-in-a-report",
        "one report may hold an envelope twice, and move a counter by more than the guarantee covers",
        'return "copiedEnvelope" if report.copied else ""',
        'return ""',
        ("test_p06_the_shuffler_refuses_copies_inside_a_report",),
    ),
    Mutant(
        "service-any-authority",
        "whoever calls itself the shuffler is handed token and tickets",
        "verify=True if ca_file is None else _trusting(ca_file),",
        "verify=False,",
        ("test_p25_a_private_authority_vouches_for_the_shuffler",),
    ),
    Mutant(
        "service-page-for-everybody",
        "a site that an operator visits can read the operator's page",
        "allowed_hosts=known, www_redirect=False",
        'allowed_hosts=["*"], www_redirect=False',
        ("test_it_is_served_to_this_machine_alone",),
    ),
    Mutant(
        "service-key-of-zeros",
        "a key that was overwritten signs or opens",
        "if not any(key):",
        "if key is None:",
        ("test_a_key_of_zeros_is_refused_and_one_that_others_may_read_is_said",),
    ),
    Mutant(
        "service-two-charters",
        "of two shufflers that start at once with two charters both run",
        "            if bytes(charter) != self.charter.data:",
        "            if not charter:",
        ("test_of_two_charters_at_once_one_is_adopted_and_the_other_refused",),
    ),
    Mutant(
        "service-log-kept-after-a-kill",
        "what was deleted stays in SQLite's log if the shuffler was killed before it emptied it",
        '            self._db.execute("COMMIT")\n        self.tidy()\n',
        '            self._db.execute("COMMIT")\n',
        ("test_p15_a_kill_leaves_no_bodies_behind",),
    ),
    Mutant(
        "service-accidents-in-words",
        "the log holds the words of an exception, and with them what somebody sent",
        'log.error("an endpoint failed: %s", type(error).__name__)\n'
        '                return problem("broken")',
        'log.error("an endpoint failed: %s", error)\n                return problem("broken")',
        ("test_of_an_accident_only_its_kind_is_noted",),
    ),
)

_LAB = (
    Mutant(
        "results-of-any-epsilon",
        "runs of one epsilon are shown as those of another",
        '"trust": [self.trust_name, asdict(self.trust)],',
        '"trust": [self.trust_name],',
        ("test_the_fingerprint_knows_what_was_guaranteed",),
    ),
    Mutant(
        "results-of-an-edited-mechanism",
        "runs of a mechanism that was edited since are shown as those of the present one",
        '"mechanism": ours_and(chosen),',
        '"mechanism": "",',
        ("test_an_edited_mechanism_of_another_package_reuses_nothing",),
    ),
)

_PAPERS = (
    Mutant(
        "printed-integers-promise",
        "a run as papers 000 and 001 print it promises what only sums would deliver",
        "            epsilon=math.inf,\n            delta=1.0,",
        "            epsilon=guarantee.epsilon,\n            delta=guarantee.delta,",
        ("test_a_paper_runs_by_its_name",),
    ),
    Mutant(
        "printed-sums-everywhere",
        "what exact noise delivers is stated for printed integers, too",
        "if self.if_only_sums is None or guarantee.claimed is None:",
        "if self.if_only_sums is None or guarantee.claimed is not None:",
        ("test_a_paper_runs_by_its_name", "test_exact_noise_makes_the_claim_of_a_paper_true"),
    ),
    Mutant(
        "paper-002-halved",
        "paper 002's Laplace noise has the scale of 003 and 004 and promises its own epsilon",
        "scale = (6 if right else 3) * sensitivity.horizon / float(trust.epsilon)",
        "scale = 3 * sensitivity.horizon / float(trust.epsilon)",
        ("test_paper_002_has_its_own_laplace_scale",),
    ),
    Mutant(
        "literal-counts-the-last-transition",
        "002 as printed is calibrated for H - 1 transitions and releases H of them",
        """        parts["transitions"][-1] = 0""",
        """        parts["transitions"][-1] *= 1""",
        ("test_the_last_transition_of_002_is_not_counted",),
    ),
    Mutant(
        "literal-counts-the-last-transition-compiled",
        "the same in the compiled loop",
        "counted = 1.0 if h < moving else 0.0",
        "counted = 1.0",
        ("test_the_compiled_run_is_the_printed_algorithm",),
    ),
    Mutant(
        "literal-bits-of-the-last-transition",
        "002 as printed is calibrated for H - 1 bits of transitions and sends H",
        """sent[self.statistics.index("transitions")][-1] = 0""",
        """sent[self.statistics.index("transitions")][-1] = 1""",
        ("test_bits_of_the_last_transition_are_not_drawn",),
    ),
    Mutant(
        "literal-calibrated-alone",
        "noise is calibrated for H - 1 transitions and the mechanism does not know",
        "last_transitions=last,\n            guarantee=guarantee,\n            noise=noise,",
        "guarantee=guarantee,\n            noise=noise,",
        ("test_the_last_transition_of_002_is_not_counted",),
    ),
    Mutant(
        "literal-reports",
        "a device whose mechanism leaves the last transition out reports it",
        "return self.by_devices and self.last_transitions",
        "return self.by_devices",
        ("test_the_last_transition_of_002_is_not_counted",),
    ),
    Mutant(
        "literal-gaussian-understated",
        "printed Gaussian noise on H - 1 transitions is said to have the delta of none",
        "square = 4 * horizon**2 + 2 * (horizon - 1) ** 2",
        "square = 4 * horizon**2",
        ("test_uneven_piles_are_covered",),
    ),
    Mutant(
        "padding-instead-of-noise",
        "padded losses are drawn with padding of half the noise",
        "return PaddedTreeNoise(episodes=self.episodes, distribution=self.distribution)",
        "return PaddedTreeNoise(episodes=self.episodes, distribution=self.distribution.scaled(0.5))",
        ("test_the_central_privatizer_of_004_pads_the_losses_alone",),
    ),
    Mutant(
        "visits-not-counted",
        "policy elimination as printed has three statistics released, calibrated for two",
        'return STATISTICS if chosen.structure == "paper" else cls.statistics',
        "return cls.statistics",
        ("test_the_papers_have_visits_released_and_the_default_does_not",),
    ),
    Mutant(
        "rho-of-one-level",
        "the concentration of a tree counts one of the nodes that a user lies in",
        "self.distribution.concentrated(l2, self.levels)",
        "self.distribution.concentrated(l2, 1)",
        ("test_rho_is_the_squared_distance_over_two_variances",),
    ),
)

_STORED_TREE = (
    Mutant(
        "stored-node-closed-bare",
        "a node is released with the noise that every copy of the file has seen",
        "self.closed[level] = before + self.open[level] + noise.draw(self._sampler, size)",
        "self.closed[level] = before + self.open[level]",
        (
            "test_one_more_user_in_the_original_and_in_a_copy_meets_different_noise",
            "test_every_node_has_two_draws_of_its_own",
        ),
    ),
    Mutant(
        "stored-node-closed-bare-at-64",
        "nodes that close at users 64, 128, ... get no second draw",
        "self.open[level] + noise.draw(self._sampler, size)",
        "self.open[level] + noise.draw(self._sampler, size) * (self.users % 64 != 0)",
        ("test_every_node_has_two_draws_of_its_own",),
    ),
    Mutant(
        "stored-node-opened-bare",
        "nodes hold exact sums while they are open",
        "self.open[level] = noise.draw(self._sampler, size)",
        "self.open[level] = 0",
        ("test_every_node_has_two_draws_of_its_own",),
    ),
    Mutant(
        "stored-node-opened-bare-at-64",
        "nodes that open at users 64, 128, ... hold exact sums",
        "self.open[level] = noise.draw(self._sampler, size)",
        "self.open[level] = noise.draw(self._sampler, size) * (self.users % 64 != 0)",
        ("test_every_node_has_two_draws_of_its_own",),
    ),
    Mutant(
        "stored-draw-shared",
        "the draw that closes a node opens the next one, where a copy shows it",
        "self.open[level] = noise.draw(self._sampler, size)",
        "self.open[level] = self.closed[level] - before - self.open[level]",
        ("test_every_node_has_two_draws_of_its_own",),
    ),
    Mutant(
        "stored-tree-unsealed",
        "what is not released yet stands in the file as it is",
        "open_stored(sampler, seal if sampler.secure else None)",
        "open_stored(sampler, None)",
        ("test_what_a_kill_leaves_beside_the_file_takes_no_noise_away",),
    ),
    Mutant(
        "seal-one-nonce",
        "all writes are encrypted with one nonce: two of them show the users in between",
        "nonce = secrets.token_bytes(_NONCE)",
        "nonce = bytes(_NONCE)",
        ("test_every_write_is_sealed_anew",),
    ),
    Mutant(
        "seal-nonce-counted",
        "nonces are counted from one again after every restart",
        "nonce = secrets.token_bytes(_NONCE)",
        'self.n = getattr(self, "n", 0) + 1\n        nonce = self.n.to_bytes(_NONCE, "big")',
        ("test_every_write_is_sealed_anew",),
    ),
    Mutant(
        "stream-study-seeded",
        "a secure stream study draws its noise from a generator that stands in its file",
        "return SecureSampler() if self._secure else SimulationSampler",
        "return SecureSampler() if self._secure and self.batches < 0 else SimulationSampler",
        ("test_one_more_user_in_the_original_and_in_a_copy_meets_different_noise",),
    ),
    Mutant(
        "stream-study-low-bits",
        "1e-13 of the data is added to what a stream study releases",
        "values = running.release().astype(np.float64)",
        "counts = data.counts(mechanism.shape, np.random.default_rng(0))\n        exact = "
        "mechanism.flat(counts)\n        "
        "values = running.release().astype(np.float64) + 1e-13 * exact",
        ("test_a_central_stream_releases_its_closed_nodes_and_nothing_else",),
    ),
    Mutant(
        "stored-tree-understated",
        "widths and dossiers count one of the two draws of a node",
        "self.terms(episode) * self.draws * self.distribution.variance",
        "self.terms(episode) * self.distribution.variance",
        ("test_releases_have_the_variance_of_the_plan",),
    ),
    Mutant(
        "stored-tree-drawn-once",
        "a tree that goes to a disk asks for one draw per node",
        "replace(self, draws=2)",
        "replace(self, draws=1)",
        ("test_releases_have_the_variance_of_the_plan",),
    ),
)

_SAID_OF_ITSELF = (
    Mutant(
        "certified-twice-the-noise",
        "certificates are made for twice the Gaussian noise that is drawn",
        "sigma = Fraction(self.sigma)",
        "sigma = 2 * Fraction(self.sigma)",
        ("test_noise_is_read_to_the_last_bit",),
    ),
    Mutant(
        "certified-one-level",
        "certificates of a tree are made for one of the nodes that a user lies in",
        "self.levels, pooled=True",
        "1, pooled=True",
        ("test_a_user_is_in_one_node_of_every_level",),
    ),
    Mutant(
        "certified-everybody-honest",
        "certificates count the noise bits of users who may not send them",
        "self.reliable(users) * bits.bits",
        "users * bits.bits",
        ("test_who_is_not_honest_adds_no_noise",),
    ),
    Mutant(
        "implied-for-half",
        "what follows from a guarantee is stronger than the guarantee",
        'replace(guarantee, notion="JDP",',
        'replace(guarantee, notion="JDP", epsilon=guarantee.epsilon / 2,',
        ("test_shuffle_and_local_privacy_imply_joint_privacy",),
    ),
    Mutant(
        "worst-time-is-the-first",
        "the noise of a stream is stated for its first release",
        "return max(worst_times(users), key=self.variance)",
        "return 1",
        ("test_stream_noise_is_that_of_the_worst_time",),
    ),
    Mutant(
        "noise-bits-doubled-on-paper",
        "a calibration reports twice the noise bits that a batch holds",
        "4 * each.variance(users)",
        "8 * each.variance(users)",
        ("test_shuffle_report",),
    ),
    Mutant(
        "more-than-was-asked-for",
        "a calibrator of somebody else's may deliver less privacy than the trust model asks for",
        "if said.epsilon > trust.epsilon or said.delta > trust.delta:",
        "if said.delta > 1 + trust.delta:",
        ("test_what_was_not_asked_for_is_refused_whoever_calibrates",),
    ),
    Mutant(
        "under-another-name",
        "a calibrator may make the mechanism of another trust model",
        "if mechanism.spec != spec or said.notion != trust.notion:",
        "if mechanism is None:",
        ("test_what_was_not_asked_for_is_refused_whoever_calibrates",),
    ),
    Mutant(
        "tree-of-devices",
        "a tree that a curator draws passes as noise of every device",
        "if self.by_devices and not isinstance(noise, IndependentNoise):",
        "if self.by_devices and noise is None:",
        ("test_a_curators_tree_is_no_noise_of_devices_and_sums_are_not_shuffled",),
    ),
    Mutant(
        "losses-behind-one-draw",
        "losses share noise of which nobody said how many draws a user moves",
        'raise UnsupportedError(f"No loss release exists for {type(self).__name__}.")',
        "return 1",
        ("test_noise_that_nothing_is_known_about_is_refused",),
    ),
)

MUTANTS = (
    *_ONE_SHOT,
    *_CENTRED,
    *_STREAMS,
    *_STORED_TREE,
    *_LOCAL,
    *_SHUFFLE,
    *_CLASSES,
    *_DEVICE,
    *_WEB,
    *_COUNTING,
    *_SAMPLERS,
    *_FRESH,
    *_MANY,
    *_ADVERSARIAL,
    *_PAPERS,
    *_STUDY,
    *_FIT,
    *_RHO,
    *_RETURNING,
    *_PEOPLE,
    *_LAB,
    *_SERVICE,
    *_SAID_OF_ITSELF,
)
