"""Network connections, normal or an attack (KDD Cup 1999, 10 % file): 494021 records, from UCI."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse

from dperm_cli.core.dataclass import dataclass
from dperm_cli.core.errors import InputError
from dperm_cli.core.fields import Help
from dperm_cli.datasets.shared import text_tables
from dperm_cli.datasets.shared.published_file import Source, WithClasses
from dperm_cli.datasets.shared.row_pipeline import Centred, Scaling

# The documented values of the three text columns, and of the label.
PROTOCOLS = ["icmp", "tcp", "udp"]
SERVICES = [
    "IRC", "X11", "Z39_50", "aol", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime",
    "discard", "domain", "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp",
    "ftp_data", "gopher", "harvest", "hostnames", "http", "http_2784", "http_443", "http_8001",
    "imap4", "iso_tsap", "klogin", "kshell", "ldap", "link", "login", "mtp", "name",
    "netbios_dgm", "netbios_ns", "netbios_ssn", "netstat", "nnsp", "nntp", "ntp_u", "other",
    "pm_dump", "pop_2", "pop_3", "printer", "private", "red_i", "remote_job", "rje", "shell",
    "smtp", "sql_net", "ssh", "sunrpc", "supdup", "systat", "telnet", "tftp_u", "tim_i", "time",
    "urh_i", "urp_i", "uucp", "uucp_path", "vmnet", "whois",
]  # fmt: skip
FLAGS = ["OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"]
LABELS = [
    "back", "buffer_overflow", "ftp_write", "guess_passwd", "imap", "ipsweep", "land",
    "loadmodule", "multihop", "neptune", "nmap", "normal", "perl", "phf", "pod", "portsweep",
    "rootkit", "satan", "smurf", "spy", "teardrop", "warezclient", "warezmaster",
]  # fmt: skip
# Records per label.
SIZES = (
    2203, 30, 8, 53, 12, 1247, 21, 9, 7, 107201, 231, 97278, 3, 4, 264, 1040, 10, 1589, 280790, 2,
    979, 1020, 20,
)  # fmt: skip
NORMAL = float(LABELS.index("normal"))

# Column -> largest value: seconds of a day, bytes of a 32-bit counter, sizes of the windows (511
# connections in two seconds, 255 hosts), and for the other counts figures near the published maxima
# of these records (larger ones are clipped). The largest value of all other columns is 1.
HIGH = {
    0: 86400, 4: 2.0**32, 5: 2.0**32, 7: 3, 8: 14, 9: 100, 10: 5, 12: 10000, 14: 2, 15: 10000,
    16: 100, 17: 5, 18: 10, 22: 511, 23: 511, 31: 255, 32: 255,
}  # fmt: skip
# Counts whose order of magnitude matters: log(1 + value) is taken of them with log=true.
HEAVY = (0, 4, 5, 9, 12, 15, 16, 22, 23, 31, 32)
WORDS = {1: PROTOCOLS, 2: SERVICES, 3: FLAGS}
NUMBERS = tuple(i for i in range(41) if i not in WORDS)


@dataclass(frozen=True, kw_only=True)
class Kddcup99(WithClasses):
    """Network connections: an attack (+1) or normal (-1), or all 23 kinds.

    The text columns become indicators of their documented values: p = 38 + 3 + 70 + 11, sparse.
    Duplicates are kept: 348435 of the 494021 records repeat another exactly, and dropping them
    would depend on the data.

    Attributes:
        log: take log(1 + value) of the counts with long tails, and of their public bounds.

    >>> Kddcup99().size, Kddcup99().task, Kddcup99(classes="all").task
    ((494021, 122), 'binary', 'multiclass')
    """

    upstream: ClassVar[str] = "UCI KDD archive, kddcup.data_10_percent"
    signs: ClassVar = {float(k): 1.0 if k != NORMAL else -1.0 for k in range(len(LABELS))}
    class_labels: ClassVar[tuple[float, ...]] = tuple(float(k) for k in range(len(LABELS)))
    facts: ClassVar[tuple[str, ...]] = ("exact duplicates are kept (348435 of 494021 records)",)
    train: ClassVar[Source] = Source(
        names=("kddcup.data_10_percent", "kddcup99_10_data"), n=494021, p=122,
        labels=dict(enumerate(SIZES)), nnz=6179964,
        limit=1 << 28, digest="7314257f549ad3366a1f7c33c447cc53", archive_limit=1 << 25,
        url="https://ndownloader.figshare.com/files/5976042",
        sha256=("8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",),
    )  # fmt: skip

    log: Annotated[bool, Help("log(1 + value) of counts with long tails")] = True
    scaling: Scaling = "bounds"
    centred: Centred = False

    def bounds(self) -> np.ndarray:
        high = np.array([float(HIGH.get(i, 1)) for i in NUMBERS])
        heavy = np.isin(NUMBERS, HEAVY)
        if self.log:
            high[heavy] = _log1p(high[heavy])
        return np.array([[0.0, h] for h in high] + [[0.0, 1.0]] * 84)

    def _records(self, path: Path, source: Source) -> tuple[Any, np.ndarray]:
        x, y = super()._records(path, source)
        if not self.log:
            return x, y
        heavy = np.isin(NUMBERS, HEAVY)
        chosen = np.append(heavy, np.zeros(84, dtype=bool))[x.indices]
        data = x.data.copy()
        data[chosen] = _log1p(x.data[chosen])
        return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape), y

    @classmethod
    def parse(cls, path: Path, source: Source) -> tuple[sparse.csr_array, np.ndarray]:
        table = text_tables.read(path, source, width=42, words=(*WORDS, 41))
        blocks = [sparse.csr_array(table[list(NUMBERS)].to_numpy())]
        for column, words in WORDS.items():
            blocks.append(_indicators(_codes(path, table[column], words), len(words)))
        labels = _codes(path, table[41].str.removesuffix("."), LABELS)
        return sparse.csr_array(sparse.hstack(blocks, format="csr")), labels.astype(np.float64)


def _log1p(counts: np.ndarray) -> np.ndarray:
    """log(1 + count), rounded once: the last bits of numpy's differ between processors."""
    distinct, code = np.unique(counts, return_inverse=True)
    exact = Context(prec=25)
    logs = np.array([float(exact.ln(1 + Decimal(count))) for count in distinct.tolist()])
    return logs[code]


def _codes(path: Path, column: Any, words: list[str]) -> np.ndarray:
    """Positions in the vocabulary [n]; InputError on a word that is not documented."""
    codes = column.map({word: k for k, word in enumerate(words)}).to_numpy(dtype=np.float64)
    unknown = np.flatnonzero(np.isnan(codes))
    if unknown.size:
        word = str(column.iloc[unknown[0]])[:40]
        allowed = f"record {unknown[0] + 1} holds {word!r}, which is not a documented value"
        raise InputError("dataset", path.name, allowed)
    return codes.astype(np.int64)


def _indicators(codes: np.ndarray, width: int) -> sparse.csr_array:
    n = codes.size
    parts = (np.ones(n), codes.astype(np.int32), np.arange(n + 1, dtype=np.int32))
    return sparse.csr_array(parts, shape=(n, width))
