"""What a fit asks, by public numbers."""

import pytest

from skpriv._estimation._links import Log
from skpriv._estimation._loop._rules import LEARNT, ROUNDS, Rules


def test_no_question_is_asked_that_a_single_user_would_answer():
    """Wherever the share of two users begins, one of them is left; that of one may have none."""
    rules = Rules.of(20_000, 3, 5_000.0, boxed=True, textbook=True)
    shares = rules.margins, rules.mean, rules.stretch, rules.clipped, rules.line
    asked = []
    assert rules.with_two_users(lambda share: asked.append(share) or 2) == rules
    assert min(asked) <= 0.25 * LEARNT * rules.line  # the least question of the line
    alone = rules.with_two_users(lambda share: 1)
    assert not any((alone.margins, alone.mean, alone.stretch, alone.clipped, alone.line))
    assert any(shares) and alone.steps == rules.steps and alone.whitening == rules.whitening


@pytest.mark.parametrize("effective_records", [20.0, 1e3, 1e6])
@pytest.mark.parametrize("n", [1, 3, 12, 24, 45, 300])
def test_each_question_has_two_users_or_only_the_mean_is_asked(n, effective_records):
    """A large budget asks cheap questions for small shares, of which no user may be left."""

    def users(share):
        return int(share * n + 1e-9)

    rules = Rules.of(n, 3, effective_records, boxed=True).with_two_users(users)
    others = rules.margins, rules.mean, rules.stretch, rules.clipped, rules.line
    shares = [rules.location, rules.spread, rules.whitening, *rules.steps, *others]
    assert rules.mean_only or sum(shares) <= 1.0 + 1e-9
    shares[2] /= ROUNDS + 1
    assert rules.mean_only == (n < 24) or all(users(share) >= 2 for share in shares if share)
    assert Rules.of(n, 3, effective_records).with_two_users(lambda share: n + 1) == Rules.of(
        n, 3, effective_records
    )  # of a curator, who asks all of all


def test_means_of_a_declared_likelihood_have_more_room():
    """From few records on to many, as powers of the precision."""
    for n, declared in ((60_000, 0.5), (2_000, 1.0 / 3.0)):
        for textbook, power in ((False, 1.0 / 3.0), (True, declared)):
            rules = Rules.of(n, 9, 0.2366 * n, link=Log(), textbook=textbook)
            assert rules.mean_room == pytest.approx((0.2366 * (n / 9.0) ** 0.5) ** power)
