"""Who pays: accountants, the ledgers that they share, and estimators that find them."""
