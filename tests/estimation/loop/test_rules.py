"""What a fit asks, by public numbers."""

from skpriv._estimation._loop._rules import LEARNT, Rules


def test_no_question_is_asked_that_a_single_user_would_answer():
    """Wherever the share of two users begins, one of them is left; that of one may have none."""
    rules = Rules.of(20_000, 3, 5_000.0, boxed=True, textbook=True)
    shares = rules.margins, rules.mean, rules.stretch, rules.clipped, rules.line
    asked = []
    assert rules.heard(lambda share: asked.append(share) or 2) == rules
    assert min(asked) <= 0.25 * LEARNT * rules.line  # the least question of the line
    alone = rules.heard(lambda share: 1)
    assert not any((alone.margins, alone.mean, alone.stretch, alone.clipped, alone.line))
    assert any(shares) and alone.steps == rules.steps and alone.whitening == rules.whitening
