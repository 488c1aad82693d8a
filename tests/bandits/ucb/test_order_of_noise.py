"""Who is trusted more has less noise: by public numbers alone, whatever the budget and shape."""

from math import hypot

import numpy as np
import pytest

from skpriv.bandits import LinUCB
from skpriv.bandits._ucb._running import BATCHES
from skpriv.privacy import TYPICAL_NORM, Budget, CodebookNoise
from skpriv.privacy._amplification import amplified_epsilon


def noise(privacy, epsilon, n, p, channel="auto"):
    """Deviation of a coordinate of N_b - N_A theta after n rounds, theta of the typical norm."""
    policy = LinUCB(privacy=privacy, epsilon=epsilon, horizon=n, channel=channel, random_state=0)
    policy.update(np.zeros((n, 1, p)), np.zeros(n), np.zeros(n))
    law = policy._sums.mark.answer.noise
    of_squares = getattr(law, "square_scale", law.scale)
    return hypot(law.scale, TYPICAL_NORM * of_squares / 2.0**0.5) / policy._sums.rounds**0.5


@pytest.mark.parametrize("epsilon, n, p", [(0.3, 2_000, 20), (1.0, 670, 2), (5.0, 670, 20)])
def test_shuffle_is_never_noisier_than_local_nor_aggregate_than_shuffle(epsilon, n, p):
    aggregate, shuffle, local = (
        noise(privacy, epsilon, n, p) for privacy in ("aggregate", "shuffle", "local")
    )
    assert aggregate <= shuffle <= local * (1.0 + 1e-9)
    for channel in ("gaussian", "codebook"):
        # Single reports, of which the newest are known at once, may have as much more noise.
        assert shuffle <= noise("shuffle", epsilon, n, p, channel) * (1.0 + BATCHES.growth / 2.0)


def test_users_send_single_reports_where_a_shuffle_delays_more_than_it_helps():
    policies = [LinUCB(privacy="shuffle", epsilon=epsilon) for epsilon in (1.0, 8.0)]
    models = [policy.update(np.zeros((1, 2, 3)), [0], [0.0]).guarantee.model for policy in policies]
    assert models == ["shuffle", "local"] and policies[1].rounds_until_update_ == 19
    assert policies[1].guarantee.epsilon == 8.0


def test_a_batch_of_reports_has_the_epsilon_that_is_proved_for_it():
    policy = LinUCB(privacy="shuffle", channel="codebook", random_state=0)
    policy.update(np.zeros((1_000, 1, 3)), np.zeros(1_000), np.zeros(1_000))
    sizes = []
    for stream in policy._sums._streams:
        proved = amplified_epsilon(Budget(1.0, 1e-6), stream.batch, stream.query.likely)
        assert stream.noise == CodebookNoise(stream.noise.code, 1)
        assert stream.noise.epsilon == pytest.approx(proved) and proved > 1.0
        sizes.append(stream.batch)
    assert policy._sums.mark.answer.noise.reports < 1_000  # codes of several batches
    assert policy.guarantee.epsilon == 1.0 and sizes[0] >= 200
