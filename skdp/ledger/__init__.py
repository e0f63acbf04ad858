"""A durable record of what was spent on a data set."""

from skdp.ledger._entry import LedgerEntry
from skdp.ledger._ledger import PrivacyLedger

__all__ = ["LedgerEntry", "PrivacyLedger"]
