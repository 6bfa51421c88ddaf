"""Twenty secrets of different shapes, each with a mark that no name of this program has, and where to plant them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

MARK = "qzx"  # is in every secret, in the part that must not be shown
SECRETS = (
    "qzxhunter2",
    "/home/qzx-ann/pro ject, (new) 'a'/x",
    r"C:\Users\qzx bob\My Files\x",
    r"\\qzx-server\share [1]\x",
    "file:///srv/qzx/data, all/x",
    "qzxnode:/scratch/x",
    "qzx_src/private part/deep/x",
    "~qzx/notes/x",
    "../qzx/(old)/x",
    "ann@qzx.example.com",
    "qzx.internal.example:8443",
    "https://user:qzx@host/path?token=qzx",
    "AKIAqzx0EXAMPLE0KEY",
    "eyJhbGciOi.qzxJ9.SflKxw-RJSM",
    "-----BEGIN qzx KEY-----\nMIIE",
    "qzx-4b1c-11ee-be56-0242ac120002",
    "password=qzx;retry=3",
    "Ann Qzx qzx, born 1815",
    "秘密qzx№7",
    "[1, 2, qzx]",
)
assert len(SECRETS) == 20 == len(set(SECRETS))
OF_MACHINES = (
    "ASIAQZXEXAMPLE0KEY99",
    "aws_secret_access_key=qzx/wJalrXUtnFEMI/K7MDENG",
    "ghp_qzx16C7e42F292c6912E7710c838347Ae178",
    "hf_qzxAbCdEfGhIjKlMnOpQrStUvWx",
    "--api-key qzx-sk-1234567890abcdef",
    "Authorization: Bearer qzx.abc.def",
    "WANDB_API_KEY=qzx0123456789abcdef\nHF_HOME=/data/qzx",
    "SLURM_JOB_USER=qzx",
    "SLURM_SUBMIT_HOST=login-qzx-3",
    "MASTER_ADDR=qzx-node-17.cluster.internal",
    "NCCL_SOCKET_IFNAME=qzx0",
    "NCCL_COMM_ID=10.1.2.3:qzx",
    "git@github.com:qzx-corp/secret-model.git",
    "https://qzx:ghp_token@github.com/corp/model.git",
    "/Users/qzx/Library/model.py",
    "/home/qzx/src/train.py(12): qzx_loss",
    r"D:\qzx\src\train.py",
    "pt_main_thread qzx",
    "python train.py --user qzx --data s3://qzx-bucket/x",
    "s3://qzx-bucket/data/x.parquet",
    "postgresql://admin:qzx@db:5432/runs",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5qzx ann@laptop",
    "+44 20 7946 qzx 0958",
)  # what environments, command lines, repositories and networks hold
ADDRESSES = ("10.77.123.45", "192.168.77.201:29500", "02:42:ac:1f:7b:2d", "fd12:3456:789a:1:2:3:4:7b")  # without MARK

Path = tuple[Any, ...]


def leaves(document: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text in a document and where it stands."""
    if isinstance(document, str):
        yield path, document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, (*path, key))
    elif isinstance(document, list | tuple):
        for i, value in enumerate(document):
            yield from leaves(value, (*path, i))


def planted(document: Any, secret: str, where: Callable[[Path], bool]) -> Any:
    """A copy of a document with a secret in place of every text that `where` chooses."""
    copied = copy.deepcopy(document)
    for path, _ in list(leaves(copied)):
        if where(path):
            place = copied
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = secret
    return copied
