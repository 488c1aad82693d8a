"""Budgets, accountants, queries and the privacy models that answer them.

An estimator never touches data: it opens a session, asks bounded-sum queries, and gets noisy
answers whose noise law is exact. The privacy model behind the session decides who adds the noise.

Names are loaded when they are first asked for: a device needs the codebook alone, for which NumPy
and the standard library are enough.
"""

from importlib import import_module

_HOMES = {
    "_accounting._amplification": ["amplified", "amplified_epsilon"],
    "_accounting._budget": ["Budget"],
    "_accounting._cost": ["Cost", "repeated_mu"],
    "_accounting._guarantee": ["Guarantee"],
    "_accounting._report": ["PrivacyReport", "ReportRow"],
    "_ledger._accountant": ["BudgetAccountant"],
    "_ledger._active": [
        "Accounted",
        "activated",
        "adds_up_gaussians",
        "capture",
        "charge",
        "noticed_charges",
        "parallel_part",
    ],
    "_ledger._numbering": ["Numbering", "only_copy"],
    "_ledger._prepaid": ["prepaid"],
    "_noise._codebook": [
        "codebook",
        "draw_index",
        "draw_ranks",
        "draw_sign",
        "index_weights",
        "lifted",
    ],
    "_noise._codebook_law": ["Codebook", "best_codebook"],
    "_noise._codebook_noise": ["CodebookBlocksNoise", "CodebookNoise"],
    "_noise._codebook_reports": ["LiftedReports"],
    "_noise._laws": [
        "NO_SECURE_REPORTS",
        "NO_SECURE_SAMPLER",
        "GaussianNoise",
        "GumbelNoise",
        "NoiseSource",
        "SymmetricWishartNoise",
        "geometric",
    ],
    "_noise._privunit": ["PrivUnitNoise", "hadamard_entries"],
    "_wire": [
        "SEED_BYTES",
        "VERSION",
        "is_known",
        "read_report",
        "read_task",
        "report_bytes",
        "reported_directions",
        "task_hash",
        "user_seed",
    ],
    "_quantile": ["BoundsQuery"],
    "_query": ["ROUNDING", "Answer", "Procedure", "Query"],
    "_session._base": ["Session"],
    "_session._open": ["MODELS", "open_session", "open_stream"],
    "_session._parts": ["Part", "split"],
    "_tape": ["listening"],
    "_session._trust": ["LOCAL_MODELS", "Groups", "Trust"],
    "_stream": ["STREAMS"],
    "_stream._base": ["Stream"],
    "_stream._central": ["ExactStream", "FactorStream", "TreeStream"],
    "_stream._local": ["LocalStream", "ShuffleStream"],
    "_stream._vector_sum": ["VectorSumStream"],
}

__all__ = [
    "LOCAL_MODELS",
    "MODELS",
    "NO_SECURE_REPORTS",
    "NO_SECURE_SAMPLER",
    "ROUNDING",
    "SEED_BYTES",
    "STREAMS",
    "VERSION",
    "Accounted",
    "Answer",
    "BoundsQuery",
    "Budget",
    "BudgetAccountant",
    "Codebook",
    "CodebookBlocksNoise",
    "CodebookNoise",
    "Cost",
    "ExactStream",
    "FactorStream",
    "GaussianNoise",
    "Groups",
    "Guarantee",
    "GumbelNoise",
    "LiftedReports",
    "LocalStream",
    "NoiseSource",
    "Numbering",
    "Part",
    "PrivUnitNoise",
    "PrivacyReport",
    "Procedure",
    "Query",
    "ReportRow",
    "Session",
    "ShuffleStream",
    "Stream",
    "SymmetricWishartNoise",
    "TreeStream",
    "Trust",
    "VectorSumStream",
    "activated",
    "adds_up_gaussians",
    "amplified",
    "amplified_epsilon",
    "best_codebook",
    "capture",
    "charge",
    "codebook",
    "draw_index",
    "draw_ranks",
    "draw_sign",
    "geometric",
    "hadamard_entries",
    "index_weights",
    "is_known",
    "lifted",
    "listening",
    "noticed_charges",
    "only_copy",
    "open_session",
    "open_stream",
    "parallel_part",
    "split",
    "prepaid",
    "read_report",
    "read_task",
    "repeated_mu",
    "report_bytes",
    "reported_directions",
    "task_hash",
    "user_seed",
]


def __getattr__(name):
    for home, names in _HOMES.items():
        if name in names:
            globals()[name] = found = getattr(import_module(f".{home}", __name__), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
