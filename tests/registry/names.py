"""Names that people give to columns, levels, labels and policies, and that no reader may take for
markup."""

HOSTILE_NAMES = [
    "$0-$10k", "$10k_$20k", "$", "_hidden", "__x__", "two\nlines", "tab\there", "x" * 200,
    "y" * 90 + "1" + "y" * 109, "y" * 90 + "2" + "y" * 109, "中文年龄收入" * 12, "收入",
    "عمر المريض", "גיל", "turned \u202e321", "<script>alert(1)</script>", "</td></table><h1>x",
    "a|b", "| --- |", "back\\slash", "\\frac{1}{2}", "\\$", "tail\\", "`code`", "```\nfence",
    "*b* __u__ ~~s~~", "1. list", "# heading", "- item", "> quote", "[link](javascript:x)",
    "![picture](x.png)", "&lt;&amp;", "%s {0}", "{}", "^2_3", "No, never", "a: b", "-1",
    "not a number", "--", "intercept", "e\u0301", "😀", "'\"",
]  # fmt: skip
# As many of the same order that need no care, for what must look alike.
USUAL_NAMES = [f"name {number}" for number in range(len(HOSTILE_NAMES))]
